"""--artifact: what a task made is copied out, as it is, with its digest; and nothing else is."""
import hashlib
import json
import os
import threading

import pytest

from boxed import IS_ROOT, place, refused
from live import live

__all__ = ["live", "place"]


def files(root):
    return {str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*") if path.is_file() and not path.is_symlink()}


def collect(place, script, *patterns, options=(), status=0):
    """The `artifacts` of the result."""
    given = [word for pattern in patterns for word in ("--artifact", pattern)]
    ran = place.sh(script, *given, *options, "--json")
    assert ran.status == status, ran
    place.assert_nothing_left()
    return ran.result["artifacts"]


def by_path(artifacts):
    return {item["path"]: item for item in artifacts["files"]}


def test_what_matches_is_copied_with_its_digest(place):
    (place.work / "old").write_text("old")
    got = collect(place, "mkdir -p out/deep; echo a > out/a.bin; printf '#!' > out/deep/run; "
                  "chmod 755 out/deep/run; touch out/empty; echo b > other", "out/**", "old")
    copies = place.state / "artifacts"
    task, = os.listdir(copies)
    assert got["directory"] == str(copies / task) and got["dropped"] == 0
    assert files(copies / task) == {"out/a.bin": b"a\n", "out/deep/run": b"#!",
                                    "out/empty": b"", "old": b"old"}
    for path, item in by_path(got).items():
        content = (copies / task / path).read_bytes()
        assert item == {"path": path, "bytes": len(content), "reason": None,
                        "sha256": hashlib.sha256(content).hexdigest()}
    mode = (copies / task / "out/deep/run").stat().st_mode
    assert mode & 0o100


def test_none_asked_for_is_null_and_makes_nothing(place):
    assert collect(place, "echo a > x") is None
    assert not (place.state / "artifacts").exists()


def test_the_directory_is_the_callers_choice(place):
    """New or there; a file of the name is replaced, a link there is not followed."""
    target = place.base / "outbox"
    collect(place, "echo 1 > x", "x", options=["--artifact-dir", target])
    (place.base / "victim").write_text("kept")
    (target / "y").symlink_to(place.base / "victim")
    got = collect(place, "echo 2 > x; echo 3 > y", "?",
                  options=["--artifact-dir", f"{place.base}/./outbox/"])
    assert got["directory"] == str(target)
    assert (target / "x").read_text() == "2\n" and (target / "y").read_text() == "3\n"
    assert (place.base / "victim").read_text() == "kept"
    (target / "d").symlink_to(place.base)
    collect(place, "mkdir d; echo 4 > d/victim", "d/*", options=["--artifact-dir", target],
            status=125)
    assert (place.base / "victim").read_text() == "kept"


def test_what_failed_is_collected_too(place):
    got = collect(place, "echo log > x; exit 3", "x", status=3)
    assert by_path(got)["x"]["sha256"] == hashlib.sha256(b"log\n").hexdigest()


def test_what_is_none_is_named_with_the_reason(place):
    (place.base / "outside").write_text("secret")
    os.symlink(place.base / "outside", place.work / "link")
    got = collect(place, "mkfifo pipe; ln -s /etc dir; truncate -s 1T giant; mkdir d; "
                  "python3 -c 'import socket; socket.socket(1).bind(\"sock\")'",
                  "*", "nothing/**")
    assert {path: item["reason"] for path, item in by_path(got).items()} == {
        "link": "it is a link", "dir": "it is a link", "pipe": "it is no regular file",
        "sock": "it is no regular file",
        "giant": "it is larger than what is left of the limit", "nothing/**": "nothing matches"}
    assert all(item["sha256"] is None for item in got["files"])
    assert not (place.state / "artifacts").exists()


def test_a_person_is_told(place):
    ran = place.sh("echo x > a; mkfifo $'b\\e[2J'", "--artifact", "?*")
    line = next(line for line in ran.err.splitlines() if "artifacts" in line)
    assert line.startswith(f"bawn: artifacts: 1 in {place.state}/artifacts/t-"), ran
    assert "; not copied: b" in line and "(it is no regular file)" in line and "\x1b" not in line
    assert place.sh("echo x > a", "--artifact", "a", "--quiet").err == ""


def test_what_is_hidden_from_the_task_is_not_copied(place):
    """Nor what is git's."""
    (place.work / "out/.git").mkdir(parents=True)
    (place.work / "out/.git/x").write_text("x")
    (place.work / "out/.env").write_text("TOKEN=hunter2")
    (place.work / "out/hid").mkdir()
    (place.work / "out/hid/a").write_text("a")
    got = collect(place, "echo b > out/b", "out/**", options=["--hide", "out/hid"])
    assert list(by_path(got)) == ["out/b"]


def test_it_is_on_record(place):
    got = collect(place, "echo a > x", "x")
    records = [json.loads(line) for file in (place.state / "trace").rglob("*.jsonl")
               for line in file.read_text().splitlines()]
    assert [record["body"]["artifacts"] for record in records
            if record["type"] == "action.result"] == [got]


@pytest.mark.parametrize("options, word", [
    (["--artifact", "/etc/passwd"], "--artifact"), (["--artifact", "../x"], "--artifact"),
    (["--artifact", "["], "--artifact"), (["--artifact", ""], "--artifact"),
    (["--artifact-dir", "/var/tmp"], "--artifact"),
    (["--artifact", "x", "--artifact-dir", "."], "the task writes"),
    (["--artifact", "x", "--artifact-dir", "new"], "the task writes"),
    (["--artifact", "x", "--artifact-dir", "/nowhere/at/all"], "--artifact-dir")])
def test_what_makes_no_sense_is_refused(place, options, word):
    refused(place.run(*options, "--", "touch", "started"), place, 125, word)


def test_a_directory_that_cannot_be_written_is_no_success(place):
    target = place.base / "outbox"
    target.write_text("a file")
    got = collect(place, "echo a > x", "x", options=["--artifact-dir", target], status=125)
    assert by_path(got)["x"]["reason"] == "it could not be copied"


def test_odd_names_and_depth(place):
    got = collect(place, "printf a > $'new\\nline'; printf b > $'\\xff'; "
                  "p=.; for i in $(seq 200); do p=$p/d; done; mkdir -p $p; echo deep > $p/f; "
                  "mkdir shut; echo c > shut/c; chmod 000 shut", "**")
    assert got["directory"] and len(got["files"]) == 4
    kept = files(place.state / "artifacts" / os.listdir(place.state / "artifacts")[0])
    assert sorted(kept.values()) == [b"a", b"b", b"c\n", b"deep\n"]


def test_an_exchanger_never_gets_what_is_outside(place):
    """Somebody swaps a file, and the directory above it, for links while it is copied."""
    secret = place.base / "secret"
    secret.mkdir()
    (secret / "f").write_text("outside" * 1000)
    for name in ("a", "b"):
        (place.work / name).mkdir()
        (place.work / name / "f").write_text("inside" * 1000)
    done = threading.Event()

    def exchange():
        while not done.is_set():
            for name in ("a", "b"):
                try:
                    os.rename(place.work / name, place.work / f"{name}.away")
                    os.symlink(secret, place.work / name)
                    os.unlink(place.work / name)
                    os.rename(place.work / f"{name}.away", place.work / name)
                    os.rename(place.work / name / "f", place.work / name / "away")
                    os.symlink(secret / "f", place.work / name / "f")
                    os.unlink(place.work / name / "f")
                    os.rename(place.work / name / "away", place.work / name / "f")
                except OSError:
                    pass

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(25):
            place.sh("true", "--artifact", "**", "--no-trace")
    finally:
        done.set()
        thread.join()
    copies = files(place.state / "artifacts") if (place.state / "artifacts").exists() else {}
    assert not any(b"outside" in content for content in copies.values())


@pytest.mark.skipif(IS_ROOT, reason="root reads every file")
def test_what_the_caller_cannot_read(place):
    got = collect(place, "echo a > x; chmod 000 x", "x")
    assert by_path(got)["x"]["reason"] == "it cannot be read"


@pytest.mark.parametrize("mode", ["--stage", "--ephemeral"])
def test_of_a_layer_it_is_what_the_task_sees(place, mode):
    """New, changed, left as it was; and nothing of what it removed, replaced or was hidden."""
    for path in ("kept", "edited", "removed", "d/kept", "d/removed", "gone/x", "anew/old",
                 "became", "secret", "dir/x", ".git/x"):
        (place.work / path).parent.mkdir(exist_ok=True)
        (place.work / path).write_text("host\n")
    script = ("echo task >edited; rm removed d/removed; rm -r gone anew dir; mkdir anew; "
              "echo task >anew/new; rm became; mkdir became; echo task >became/f; echo task >dir; "
              "ln -s /etc/passwd link; mkfifo queue; chmod 600 d/kept; mkdir -p sub/.git; "
              "echo task >sub/.git/x; truncate -s 5G sub/giant; mkdir shut; echo task >shut/f; "
              "chmod 000 shut/f; echo task >$'new\nline'")
    got = collect(place, script, "**", options=[mode, "--hide", "secret"])
    found = by_path(got)
    copies, = (place.state / "artifacts").iterdir()
    host, task = b"host\n", b"task\n"
    assert files(copies) == {"kept": host, "edited": task, "d/kept": host, "anew/new": task,
                             "became/f": task, "dir": task, "new\nline": task,
                             **({"shut/f": task} if "shut/f" in files(copies) else {})}
    short = {path: item["reason"] for path, item in found.items() if item["reason"]}
    short.pop("shut/f", None)
    assert short == {"link": "it is a link", "queue": "it is no regular file",
                     "sub/giant": "it is larger than what is left of the limit"}
    for path, item in found.items():
        if not item["reason"]:
            assert item["sha256"] == hashlib.sha256((copies / path).read_bytes()).hexdigest()
    # a pattern of what is gone in its view matches nothing
    found = by_path(collect(place, "rm kept", "kept", "edited", options=[mode]))
    assert found["kept"]["reason"] == "nothing matches" and found["edited"]["sha256"]
    assert files(place.work)["kept"] == host


@pytest.mark.parametrize("option", [(), ("--stage",), ("--ephemeral",), ("--ephemeral=empty",)])
def test_of_each_action_of_a_live_task(live, option):
    (live.work / "host.txt").write_text("host")
    task = live.begin(*option)
    before = [] if "--ephemeral=empty" in option else ["host.txt"]
    found = []
    for name in ("a", "b"):
        ran = live.sh_in(task, f"echo {name} > {name}.txt; ln -s /etc/passwd {name}.link",
                         "--artifact", "*.txt", "--artifact", "*.link", "--json")
        assert ran.status == 0, ran
        got = ran.result["artifacts"]
        action = ran.result["action"]["id"]
        assert got["directory"] == str(live.state / "artifacts" / task / action)
        found += [name + ".txt"]
        copies = files(live.state / "artifacts" / task / action)
        assert sorted(copies) == sorted(before + found), copies
        assert copies[f"{name}.txt"] == f"{name}\n".encode()
        of_name = by_path(got)
        assert of_name[f"{name}.txt"]["sha256"] == hashlib.sha256(f"{name}\n".encode()).hexdigest()
        assert of_name[f"{name}.link"]["reason"] == "it is a link"
    assert live.sh_in(task, "true", "--json").result["artifacts"] is None
    assert live.verb("task", "end", task).status == 0
    live.assert_nothing_left()


def test_where_those_of_an_action_go(live):
    (live.base / "here").mkdir()
    task = live.begin()
    ran = live.sh_in(task, "echo a > a", "--artifact", "a", "--artifact-dir", "out",
                     cwd=live.base / "here")
    assert ran.status == 0 and files(live.base / "here/out") == {"a": b"a\n"}, ran
    for words, why in ((("--artifact", "a", "--artifact-dir", live.work), "the task writes"),
                       (("--artifact", "../a"), "--artifact"),
                       (("--artifact-dir", live.base), "is for what --artifact names")):
        ran = live.sh_in(task, "echo ran > ran", *words)
        assert ran.status == 125 and why in ran.err and not (live.work / "ran").exists(), ran
    ran = live.verb("task", "start", "--artifact", "a")
    assert ran.status == 125 and "--artifact" in ran.err, ran
    ran = live.sh_in(task, "exit 3", "--artifact", "a", "--artifact-dir", live.base / "out")
    assert ran.status == 3 and files(live.base / "out") == {"a": b"a\n"}, "also of one that failed"
    assert live.verb("task", "end", task).status == 0


def test_the_task_changes_them_meanwhile(live):
    """What runs on in the task exchanges a file and a link to the host's, all the time."""
    secret = live.base / "secret"
    secret.write_text("of the host")
    task = live.begin()
    ran = live.sh_in(task, f"(while :; do ln -sfn {secret} x; rm x; echo mine > x; done) "
                     ">/dev/null 2>&1 & echo on")
    assert ran.status == 0, ran
    for number in range(20):
        out = live.base / f"out{number}"
        ran = live.sh_in(task, "true", "--artifact", "*", "--artifact-dir", out)
        assert ran.status == 0, ran
        assert all(b"host" not in content for content in files(out).values()), ran
    assert live.verb("task", "end", task).status == 0
