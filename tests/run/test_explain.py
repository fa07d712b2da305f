"""bawn explain: the six questions, from the plan, in words; it starts and leaves nothing."""
import json
import os
import subprocess

import jsonschema
import pytest

from boxed import BAWN, IS_ROOT, ROOT, listing, place

__all__ = ["place"]

QUESTIONS = ["what runs?", "what can it read?", "what can it write?", "what can it connect to?",
             "with whose identity does it act?", "can the whole be reconstructed and taken over?",
             "what can it use up?", "which layers hold it?"]


PATH_SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs" / "schema" / "path.schema.json").read_text()))


def verb(place, *arguments, env=None):
    return subprocess.run([BAWN, "explain", *place.options, *arguments], capture_output=True,
                          text=True, cwd=place.work, timeout=20, check=False,
                          env={**os.environ, **(env or {})})


def answers(place, *arguments, env=None):
    ran = verb(place, "--json", *arguments, env=env)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


def holds(lines, enforcement, text, item=None):
    return any(line["enforcement"] == enforcement and text in line["text"] and
               (item is None or item in line["items"]) for line in lines)


def test_text(place):
    ran = verb(place, "--", "make", "test")
    assert ran.returncode == 0 and ran.stderr == ""
    titles = [line for line in ran.stdout.splitlines() if line and line[0] != " "]
    assert titles == [*QUESTIONS, "what becomes of the command?", "allow"]
    assert str(place.work) in ran.stdout
    assert '[built-in "workspace.write"]' in " ".join(ran.stdout.split())


def test_options_are_in_the_answers(place):
    (place.work / "secret").write_text("x")
    (place.work / "kept").write_text("x")
    work = str(place.work)
    found = answers(place, "--read", "/var/log", "--hide", "secret", "--hide", "later",
                    "--hide", "/usr/share/doc", "--protect", "kept", "--timeout", "90s",
                    "--env", "TOKEN=hunter2")
    assert holds(found["read"], "exact", "read-only", "/var/log")
    assert holds(found["read"], "polled", "mask", f"{work}/secret")
    assert holds(found["read"], "polled", "no such name now", f"{work}/later")
    assert holds(found["read"], "exact", "absent by name", "/usr/share/doc")
    assert holds(found["write"], "polled", "not changeable", f"{work}/kept")
    assert holds(found["resources"], "exact", "wall clock: 90s")
    assert holds(found["identity"], "exact", "asked for", "TOKEN")
    assert "hunter2" not in json.dumps(found)
    flag = next(line for line in found["read"] if "/var/log" in line["items"])["rule"]
    assert flag["file"] == "--read" and flag["line"] == 1


def test_a_terminal_is_told(place):
    for command in ([], ["--", "true"]):
        told = answers(place, "--tty", *command)["command"]
        assert [line["rule"]["file"] for line in told if "terminal" in line["text"]] == ["--tty"]
        assert not [line for line in answers(place, *command)["command"]
                    if "terminal" in line["text"]]


def test_gaps_are_told(place):
    found = answers(place)
    assert holds(found["write"], "absent", "taken out and wait for `bawn review`")
    assert holds(found["record"], "exact", "on record before it starts")
    assert holds(answers(place, "--no-trace")["record"], "absent", "nothing is recorded")
    assert holds(found["resources"], "absent", "wall clock: none; --timeout sets one")
    assert holds(found["identity"], "absent", "supplementary groups") == (not IS_ROOT)
    found = answers(place, "--nested-userns", "--allow-ptrace")
    assert holds(found["identity"], "absent", "--nested-userns")
    assert holds(found["identity"], "absent", "--allow-ptrace")
    landlock = next(line for line in found["layers"] if line["layer"] == "landlock")
    assert "file rules" in landlock["text"]


def test_the_command(place):
    assert holds(answers(place, "--", "/usr/bin/env")["command"], "inferred", "this rule shows")
    assert holds(answers(place, "--", "/root/x")["command"], "inferred", "no rule shows")
    assert holds(answers(place, "--", "env")["command"], "inferred", "searched inside")
    assert holds(answers(place, "--", "./x")["command"], "inferred", f"below {place.work}")
    hidden = answers(place, "--hide", "/usr/bin/env", "--", "/usr/bin/env")
    assert holds(hidden["command"], "inferred", "hidden")


def policy(place, text):
    path = place.base / "policy.yaml"
    path.write_text("version: 1\n" + text)
    path.chmod(0o600)
    return ["--policy", path]


def test_what_becomes_of_the_command(place):
    """The gate's own answer: where no rule speaks of requests it looks at none."""
    said = answers(place, "--", "sh", "-c", "sudo ls; git push")["decision"]
    assert said["verdict"] == "allow" and said["request"] is None
    assert ["git", "push"] in said["segments"]
    rules = policy(place, "approvals: {ask: [external-writes]}\n")
    said = answers(place, *rules, "--", "sh", "-c", "ls && git push")["decision"]
    asked = said["requests"][said["request"]]
    assert said["verdict"] == "ask" and asked["verb"] == "external.write"
    assert said["rule"]["id"] == "approvals.ask" and said["rule"]["line"] == 2
    ran = place.run(*rules, "--", "sh", "-c", "ls && git push")
    assert ran.status == 126, ran
    assert "decision" not in answers(place)


def ask(place, path, *options):
    ran = verb(place, *options, "--json", "--path", path)
    said = json.loads(ran.stdout)
    PATH_SCHEMA.validate(said)
    assert ran.returncode == (0 if said["read"] or said["write"] else 1)
    return said


def tries(place, options, paths):
    """{path: (what it could be read as, whether it could be written)}, tried in one box."""
    script = '''for path; do
  read=-; [ -d "$path" ] && read=directory || { cat "$path" >/dev/null 2>&1 && read=file; }
  write=no
  if [ -d "$path" ]; then mkdir "$path/.try" 2>/dev/null && write=yes && rmdir "$path/.try"
  elif [ -e "$path" ]; then (: >>"$path") 2>/dev/null && write=yes
  else (: >"$path") 2>/dev/null && write=yes && rm -f "$path"; fi
  echo "$read $write $path"
done'''
    ran = place.run(*options, "--", "sh", "-c", script, "sh", *paths)
    assert ran.status == 0, ran
    rows = [line.split(" ", 2) for line in ran.out.splitlines()]
    return {path: (read, write == "yes") for read, write, path in rows}


@pytest.mark.parametrize("options", [[], ["--read-only"], ["--stage"], ["--ephemeral"]])
def test_a_path_is_what_a_task_finds(place, options):
    """Each answer is tried in a box: links, "..", what is not there yet, what is anybody's."""
    work = place.work
    (work / "kept").write_text("x")
    (work / "secret").write_text("x")
    (work / "folder").mkdir()
    (work / "folder" / "deep").write_text("x")
    for name, target in (("in", "folder/deep"), ("out", "/etc/shadow"), ("up", "../../etc/passwd"),
                         ("loop", "loop"), ("masked", "secret"), ("host", "/var/log"),
                         ("by", "folder/../kept"), ("usr", "/bin/sh"), ("none", "gone")):
        (work / name).symlink_to(target)
    (work / "modes").write_text("x")
    (work / "modes").chmod(0o400)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    options = [*options, "--hide", "secret", "--protect", "kept"]
    paths = ["kept", "secret", "masked", "folder", "folder/deep", "folder/new", "in", "out", "by",
             "usr", "host", "none", "modes", ".git/config", ".git/new", "new", ".",
             "/etc/passwd", "/etc/shadow", "/etc", "/usr/bin/env", "/bin", "/usr/bin/new", "/new",
             "/tmp", "/tmp/new", "/var/tmp/new", "/dev/null", "/dev/new", "/proc/self/comm",
             "/proc/modules", "/run/bawn/policy.txt", "/run/bawn/new", "/var/log", "/sys/kernel",
             "/usr/../etc/passwd", f"{work}/folder/../kept", "/proc/self/cwd/in",
             "/proc/self/cwd/new", "/proc/self/cwd/kept", "/proc/thread-self/cwd/new",
             "/proc/self/root/tmp/new", "/proc/self/cwd/../new", "modes/", "in/", "in/x",
             "usr/x", "in/../new", "folder/"]
    own = ["/proc/1/environ", "/proc/1/status", "/proc/1/fd/0",
           "/proc/1/task/1/maps", "/proc/1/task/1/comm", "/run/bawn/canary", "/run/bawn/empty",
           "/run/bawn/mask-file", "/proc/1/root/etc/passwd",
           "/proc/1/cwd/kept"]
    paths += own
    found = tries(place, options, paths)
    for path in paths:
        said = ask(place, path, *options)
        read, write = found[path]
        assert said["write"] == write, (path, said, found[path])
        if said["presence"] == "there" or path in own:
            assert said["read"] == (read != "-"), (path, said, found[path])
        if said["presence"] == "not there":
            assert read == "-", (path, said, found[path])
    with pytest.raises(json.JSONDecodeError):
        ask(place, "loop", *options)


def test_a_path_names_rule_and_links(place):
    (place.work / "secret").write_text("x")
    (place.work / "to").symlink_to("secret")
    rules = policy(place, "filesystem: {hide: [{name: secret, id: no-secret}]}\n")
    said = ask(place, "to", *rules)
    assert said["rule"] == {"id": "no-secret", "file": str(rules[1]), "line": 2}
    assert said["links"] == [f"{place.work}/to -> secret"] and said["way"] == "hidden"
    assert ask(place, "~/.ssh/id_rsa")["way"] == "private"
    assert ask(place, "/etc/shadow")["rule"]["id"] == "system.absent"
    ran = verb(place, *rules, "--path", "to")
    assert ran.returncode == 1 and '  hidden: the box has nothing' in ran.stdout, ran
    assert '"no-secret"' in ran.stdout
    for wrong in ("", "x" * 5000):
        assert verb(place, "--path", wrong).returncode == 2
    assert verb(place, "--path", "x", "--host", "a:1").returncode == 2
    # where these lead is a process's to say
    for own in ("/proc/self/fd/1", "/proc/7/fd/3/x", "/proc/self/exe", "/dev/stdout", "/dev/fd/9",
                "/proc/thread-self/fd/0", "/proc/self/task/1/fd/2", "/proc/self/ns/net",
                "/proc/self/map_files/0-1"):
        ran = verb(place, "--path", own)
        assert ran.returncode == 2 and not ran.stdout, (own, ran)
        assert "no policy says" in ran.stderr and ran.stderr.count("\n") == 1, (own, ran)
    assert verb(place, "--path", "/proc/self/fd").returncode == 0


def test_variables_that_are_not_passed_are_named(place):
    found = answers(place, env={"AWS_SECRET_ACCESS_KEY": "hunter2"})
    assert holds(found["identity"], "exact", "not passed", "AWS_SECRET_ACCESS_KEY")
    assert "hunter2" not in json.dumps(found)


def test_it_is_the_policy_of_the_run(place):
    ran = place.run("--json", "--", "true")
    assert ran.status == 0, ran
    assert answers(place)["policy"] == ran.result["policy"]


@pytest.mark.parametrize("arguments, status, word", [
    (["--bogus"], 2, "--bogus"), (["--timeout", "soon"], 2, "soon"),
    (["--workspace", "/"], 125, "--workspace"), (["--read", "/proc"], 1, "/proc"),
])
def test_wrong_use(place, arguments, status, word):
    ran = verb(place, *arguments)
    assert ran.returncode == status and ran.stdout == ""
    assert ran.stderr.startswith("bawn: ") and word in ran.stderr


def test_nothing_is_started_or_left(place):
    before = listing(place.work)
    assert verb(place, "--", "touch", "started").returncode == 0
    assert listing(place.work) == before
    place.assert_nothing_left()
