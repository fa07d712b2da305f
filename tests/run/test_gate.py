"""What a policy's rules make of actions before they start, in runs and live tasks."""
import json
import os
import subprocess

import pytest

from boxed import BAWN, place

__all__ = ["place"]

POLICY = """\
version: 1
exec:
  deny: [{program: wget, id: no-wget}]
  sets: [no-user-management]
approvals:
  ask: [destructive]
  targets: [{label: production, paths: ["deploy/**"]}]
exceptions:
  - {command: "rm -rf build", owner: anna, reason: made anew, expires: 2199-01-01}
  - {command: "rm -rf old", owner: anna, reason: was made anew, expires: 2020-01-01, id: over}
"""


@pytest.fixture
def policy(place):
    folder = place.base / "policies"
    folder.mkdir(mode=0o700)

    def write(text, name="policy.yaml"):
        path = folder / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    return write


def bawn(place, verb, *arguments):
    return subprocess.run([BAWN, *verb.split(), *place.options, *arguments], capture_output=True,
                          text=True, cwd=place.work, timeout=60, check=False)


def result_of(ran):
    return json.loads(ran.stdout.splitlines()[-1])


ROWS = [
    (["touch", "made"], 0, ""),
    (["sh", "-c", "touch made && ls"], 0, ""),
    (["rm", "-rf", "build"], 0, ""),
    (["sh", "-c", "rm -rf build"], 0, ""),
    (["rm", "-rf", "kept"], 126, "command.asked fs.remove kept"),
    (["sh", "-c", "true; rm -rf kept"], 126, "command.asked fs.remove kept"),
    (["bash", "-c", "find kept -delete"], 126, "command.asked fs.remove kept"),
    (["sh", "-c", "rm -rf build; rm -rf kept"], 126, "command.asked fs.remove build"),
    (["rm", "-rf", "old"], 126, "command.denied exec rm (\"over\""),
    (["wget", "x"], 126, "command.denied exec wget (\"no-wget\""),
    (["sh", "-c", "env A=1 wget x"], 126, "command.denied exec wget (\"no-wget\""),
    (["useradd", "x"], 126, "command.denied exec useradd (\"exec.sets\""),
    (["touch", "deploy/x"], 126, "command.asked fs.write deploy/x"),
    (["sh", "-c", "echo x > deploy/x"], 126, "command.asked fs.write deploy/x"),
    (["sh", "-c", "echo '"], 126, "command.asked exec.unclear"),
    (["rm", "-rf", "/"], 126, "command.denied fs.ruin /"),
]


@pytest.mark.parametrize("argv, status, words", ROWS, ids=lambda value: str(value)[:40])
def test_an_action_passes_or_does_not_start(place, policy, argv, status, words):
    (place.work / "kept").mkdir()
    (place.work / "deploy").mkdir()
    ran = bawn(place, "run", "--json", "--policy", policy(POLICY), "--", *argv)
    assert ran.returncode == status, ran
    assert words in ran.stderr and ("denied" in ran.stderr) == bool(words), ran
    assert (place.work / "kept").is_dir()
    assert not (place.work / "deploy" / "x").exists()
    result = result_of(ran)
    verdicts = result["verdicts"]
    assert verdicts[0]["verb"] == "process.exec" and verdicts[0]["target"] == argv[0]
    if not words:
        assert {row["verdict"] for row in verdicts} == {"allow"}
        return
    assert result["end"]["kind"] == "denied" and result["cause"] == "policy"
    denial = result["denials"][0]
    assert verdicts[0]["verdict"] == ("ask" if "asked" in words else "deny")
    assert denial["rule"] == verdicts[0]["rule"] and denial["code"] in words
    # which command of the line it was
    if "unclear" not in words:
        asked = next(row for row in verdicts[1:] if row["verdict"] == verdicts[0]["verdict"])
        assert asked["segment"] and asked["rule"] == verdicts[0]["rule"]


def test_a_live_task_goes_by_the_same_rules(place, policy):
    (place.work / "kept").mkdir()
    started = bawn(place, "task start", "--policy", policy(POLICY))
    assert started.returncode == 0, started
    task = started.stdout.strip()
    try:
        for argv, status, words in ROWS[:12]:
            ran = bawn(place, "task exec", task, "--json", "--", *argv)
            assert ran.returncode == status and words in ran.stderr, (argv, ran)
            assert result_of(ran)["verdicts"][0]["target"] == argv[0]
    finally:
        bawn(place, "task end", task)
    assert (place.work / "kept").is_dir()


def test_verdicts_and_denials_are_on_record(place, policy):
    ran = bawn(place, "run", "--json", "--policy", policy(POLICY), "--", "sh", "-c",
               "ls; rm -rf kept")
    assert ran.returncode == 126, ran
    task = result_of(ran)["action"]["task"]
    shown = bawn(place, "trace show", task)
    assert shown.returncode == 0, shown
    assert "ask fs.remove kept (\"approvals.ask\"" in shown.stdout
    assert "command.asked fs.remove kept" in shown.stdout
    verified = bawn(place, "trace verify")
    assert verified.returncode == 0, verified


def test_a_secret_of_the_environment_is_masked_in_verdicts(place, policy):
    secret = "hunter2-correct-horse-battery"
    path = policy(POLICY)
    ran = subprocess.run([BAWN, "run", *place.options, "--policy", path, "--env", "API_TOKEN",
                          "--", "touch", secret], cwd=place.work, capture_output=True, text=True,
                         timeout=60, check=False, env={**os.environ, "API_TOKEN": secret})
    assert ran.returncode == 0, ran
    store = place.state / "trace"
    kept = b"".join(path.read_bytes() for path in store.rglob("*.jsonl"))
    assert b"\"type\":\"verdict\"" in kept and secret.encode() not in kept


def test_always_asks_for_everything_but_reads_of_the_view(place, policy):
    path = policy("version: 1\napproval: always\n")
    (place.work / "x").write_text("seen\n")
    for argv, status in ((["cat", "x"], 0), (["sh", "-c", "cat x | grep s"], 0),
                         (["sh", "-c", "find . -name x | xargs grep s"], 0),
                         (["sh", "-c", "echo $((1 + 2))"], 0),
                         (["sh", "-c", "echo $((a[1]))"], 126),
                         (["ls", "/usr"], 0), (["id"], 0), (["touch", "y"], 126),
                         (["cat", "/srv/nothing"], 126), (["npm", "test"], 126),
                         (["python3", "x"], 126)):
        ran = bawn(place, "run", "--policy", path, "--", *argv)
        assert ran.returncode == status, (argv, ran)
    assert not (place.work / "y").exists()


def test_without_rules_nothing_is_looked_at(place):
    for more in ([], ["--preset", "ci"], ["--preset", "review"]):
        ran = bawn(place, "run", "--json", *more, "--", "sh", "-c", "rm -rf nothing; true")
        assert ran.returncode == 0 and "verdicts" not in result_of(ran), ran


def test_a_program_is_its_file(place, policy):
    """By another name, a link or a path it is the same one; what only has its name is another."""
    (place.work / "alias").symlink_to("/usr/bin/env")
    (place.work / "env").write_text("#!/bin/sh\necho mine\n")
    (place.work / "env").chmod(0o755)
    denies = policy("version: 1\nexec: {deny: [/usr/bin/env]}\n", "deny.yaml")
    allows = policy("version: 1\nexec: {allow: [env, sh]}\n", "allow.yaml")
    for argv, denied in ((["env"], True), (["/usr/bin/env"], True), (["./alias"], True),
                         (["/usr/../usr/bin/env"], True), (["sh", "-c", "exec env"], True),
                         (["./env"], False), (["true"], False)):
        ran = bawn(place, "run", "--policy", denies, "--", *argv)
        assert (ran.returncode == 126) == denied, (argv, ran)
    for argv, allowed in ((["env"], True), (["./alias"], True), (["./env"], False),
                          (["true"], False), (["no-such-program"], False)):
        ran = bawn(place, "run", "--policy", allows, "--", *argv)
        assert (ran.returncode != 126) == allowed, (argv, ran)


def test_a_program_is_its_file_by_the_ways_of_the_box(place, policy):
    """Attack: a denied program by names that lead to it in the box and nowhere outside."""
    (place.work / "d").mkdir()
    (place.work / "alias").symlink_to("/usr/bin/env")
    (place.work / "d" / "below").symlink_to("../alias")
    (place.work / "d" / "root").symlink_to("/proc/self/root/usr/bin/env")
    (place.work / "d" / "here").symlink_to("/proc/self/cwd/alias")
    path = policy("version: 1\nexec: {deny: [/usr/bin/env]}\n", "deny.yaml")
    allows = policy("version: 1\nexec: {allow: [env]}\n", "allow.yaml")
    for argv in (["d/../alias"], ["./d/below"], ["d/root"], ["d/here"], ["../work/alias"],
                 ["/proc/self/cwd/alias"], ["/proc/self/root" + str(place.work) + "/alias"],
                 ["sh", "-c", "cd d && ./below"], ["sh", "-c", "cd d; cd ..; d/../alias"],
                 ["/home/../usr/bin/env"], ["/tmp/../usr/bin/env"]):
        if argv[0] == "../work/alias":
            argv = ["../" + place.work.name + "/alias"]
        ran = bawn(place, "run", "--policy", path, "--", *argv)
        assert ran.returncode == 126 and "exec" in ran.stderr, (argv, ran)
    # what another directory has by that name is not the one that is allowed
    (place.work / "tool").symlink_to("/usr/bin/env")
    (place.work / "d" / "tool").write_text("#!/bin/sh\necho mine\n")
    (place.work / "d" / "tool").chmod(0o755)
    assert bawn(place, "run", "--policy", allows, "--", "./tool").returncode == 0
    assert bawn(place, "run", "--policy", allows, "--", "d/../tool").returncode == 0
    assert bawn(place, "run", "--policy", allows, "--", "d/tool").returncode == 126
    text = policy("version: 1\nexec: {allow: [sh, env]}\n", "text.yaml")
    ran = bawn(place, "policy decide", "--policy", text, "--shell", "cd d && ./tool")
    assert ran.returncode == 1, ran


def test_an_exception_is_for_one_file(place, policy):
    tool = place.work / "tool"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    digest = subprocess.run(["sha256sum", str(tool)], capture_output=True, text=True,
                            check=True).stdout.split()[0]
    path = policy(f"""\
version: 1
exec: {{deny: [tool]}}
exceptions:
  - {{command: "./tool a", owner: anna, reason: known, expires: 2199-01-01, sha256: "{digest}"}}
""")
    assert bawn(place, "run", "--policy", path, "--", "./tool", "a").stdout == "ran\n"
    assert bawn(place, "run", "--policy", path, "--", "./tool", "b").returncode == 126
    tool.write_text("#!/bin/sh\necho changed\n")
    assert bawn(place, "run", "--policy", path, "--", "./tool", "a").returncode == 126


def test_decide_says_what_a_run_does(place, policy):
    path = policy(POLICY)
    for argv, status, _ in ROWS:
        decided = bawn(place, "policy decide", "--policy", path, "--", *argv)
        assert (decided.returncode == 0) == (status == 0), (argv, decided)


def test_exceptions_are_listed(place, policy):
    path = policy(POLICY)
    ran = bawn(place, "policy exceptions", "--policy", path)
    assert ran.returncode == 0, ran
    assert "rm -rf build\n  until 2199-01-01, anna: made anew" in ran.stdout
    assert "EXPIRED, and so denied: until 2020-01-01, anna" in ran.stdout
    assert f"[\"over\" {path}:10]" in ran.stdout
    rows = json.loads(bawn(place, "policy exceptions", "--json", "--policy", path).stdout)
    assert [row["expired"] for row in rows["exceptions"]] == [False, True]
    assert bawn(place, "policy exceptions").stdout == "no exceptions\n"


def test_the_summary_in_the_box_tells_the_rules(place, policy):
    path = policy(POLICY)
    ran = bawn(place, "run", "--policy", path, "--", "cat", "/run/bawn/policy.txt",
               "/run/bawn/policy.json")
    assert ran.returncode == 0, ran
    for words in ("denied program: wget", "asked for: destructive", "label production: deploy/**",
                  "exception: rm -rf build", "\"approval\":\"on-request\""):
        assert words in ran.stdout, (words, ran.stdout)
    assert "answered for by a person" not in bawn(place, "run", "--", "cat",
                                                  "/run/bawn/policy.txt").stdout


FAULTS = [
    ("exceptions: [{command: '* x', owner: a, reason: b, expires: 2199-01-01}]", "over-broad"),
    ("exceptions: [{command: 'x', owner: a, reason: b, expires: 2199-01-01, sha256: abc}]",
     "64 digits"),
    ("approvals: {targets: [{label: production}]}", "neither hosts nor paths"),
]


@pytest.mark.parametrize("text, words", FAULTS)
def test_rules_that_decide_nothing_or_too_much_are_refused(place, policy, text, words):
    ran = bawn(place, "run", "--policy", policy(f"version: 1\n{text}\n"), "--", "true")
    assert ran.returncode == 125 and words in ran.stderr, ran
