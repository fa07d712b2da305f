"""What a new user meets: texts that name the object, remedies that work, no output lost unseen."""
import os
import pwd
import shutil
import signal
import subprocess
import time

import pytest

from boxed import BAWN, LIMIT_S, catching, place, select_ready

__all__ = ["place"]


def bawn(*words, **options):
    return subprocess.run([BAWN, *words], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False, **options)


def test_help_behind_a_verb_is_the_help_of_the_verb():
    for word in ("--help", "-h"):
        asked = bawn("run", word)
        assert (asked.returncode, asked.stdout) == (0, bawn("help", "run").stdout)


def test_help_names_what_it_does_not_know():
    asked = bawn("help", "walk")
    assert asked.returncode == 2 and "walk" in asked.stderr
    assert bawn("help", "run", "extra").returncode == 2


def test_help_that_cannot_be_printed_says_so():
    with open("/dev/full", "wb") as full:
        asked = subprocess.run([BAWN, "help"], stdout=full, stderr=subprocess.PIPE, check=False,
                               timeout=LIMIT_S)
    assert asked.returncode == 125 and asked.stderr.startswith(b"bawn: ")


def test_no_remedy_where_none_would_be_granted(place):
    written = place.sh("touch /usr/lib/x")
    assert "denied: fs.write /usr/lib/x" in written.err, written
    assert "to allow" not in written.err and "no option allows it" in written.err, written
    assert place.run("--write", "/usr/lib", "--", "true").status == 126
    read = place.run("--json", "--", "cat", "/boot/x")
    assert "no option allows it" in read.err, read
    assert read.result["denials"][0]["remedy"] is None, read


def test_a_remedy_that_is_offered_works(place):
    for path in ("/var/lib/dpkg/status", "/var/lib/dpkg/info"):
        line = place.run("--", "ls", path).err.splitlines()[-1]
        assert path in line, line
        pasted = subprocess.run(
            ["sh", "-c", f'exec "$@" {line.split("to allow: ")[1]} -- test -r {path}', "sh",
             *place.argv()], cwd=place.work, capture_output=True, timeout=LIMIT_S, check=False)
        assert pasted.returncode == 0, (line, pasted)


def test_output_that_was_not_written_is_no_success(place):
    for script, status in (("echo hello", 125), ("echo hello; exit 3", 3)):
        with open("/dev/full", "wb") as full:
            ran = place.sh(script, stdout=full)
        assert ran.status == status and "standard output could not be written" in ran.err, ran
    with open("/dev/full", "wb") as full:
        child = place.start("--", "sh", "-c", "echo hello >&2", stderr=full)
        child.communicate(timeout=LIMIT_S)
    assert child.returncode == 125
    place.assert_nothing_left()


def test_a_reader_that_left_is_no_failure_of_ours(place):
    reader, writer = os.pipe()
    os.close(reader)
    ran = place.sh("echo hello", stdout=writer)
    os.close(writer)
    assert ran.status in (0, 128 + signal.SIGPIPE) and "bawn" not in ran.err, ran


def press_twice(place):
    """A key press that comes to us and, by a parent that passes it on, comes again."""
    child = place.start("--", *catching("INT", "sleep 1; print qq(cleaned\\n); exit 7"))
    assert select_ready(child) == b"ready\n"
    child.send_signal(signal.SIGINT)
    time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=LIMIT_S)
    return child.returncode, out


def test_one_key_press_that_comes_twice_is_one(place):
    # after 100 ms, which a busy host makes of 20 now and then, it is another
    assert any(press_twice(place) == (7, b"cleaned\n") for _ in range(4))
    place.assert_nothing_left()


def test_the_remedy_for_an_open_state_directory_has_a_condition(place):
    place.state.chmod(0o755)
    assert "if it is bawn's alone" in place.run("--", "true").err


def git(*words):
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words],
                   check=True, capture_output=True, timeout=LIMIT_S)


def test_a_new_file_in_what_is_shown_asks_for_what_is_shown(place):
    shown = place.base / "shown"
    shown.mkdir()
    ran = place.run("--read", shown, "--", "touch", shown / "new")
    assert f"fs.write {shown}/new (flag --read" in ran.err, ran
    assert ran.err.endswith(f"to allow: --write {shown}\n"), ran
    assert place.run("--write", shown, "--", "touch", shown / "new").status == 0


def test_a_linked_worktree_asks_for_the_repository(place):
    """In a home, since absence in a private area is never reported."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    repository = f"{home}/.bawn-absent/.git"
    (place.work / ".git").write_text(f"gitdir: {repository}/worktrees/w\n")
    ran = place.run("--", "git", "status")
    assert f"fs.read {repository}/worktrees/w (" in ran.err, ran
    assert ran.err.endswith(f"to allow: --read {repository}\n"), ran


def test_a_worktree_works_with_its_repository_shown(place):
    repository = place.base / "repository"
    git("init", "-q", repository)
    git("-C", repository, "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", repository, "worktree", "add", "-q", place.work / "tree")
    ran = place.run("--workspace", place.work / "tree", "--write", repository / ".git", "--", "git",
                    "-c", "user.name=A", "-c", "user.email=a@example.org", "commit",
                    "--allow-empty", "-qm", "second", cwd=place.work / "tree")
    assert ran.status == 0, ran


def test_manual_pages_are_there(place):
    if not shutil.which("man") or subprocess.call(["man", "-w", "bash"], stdout=2):
        pytest.skip("no manual pages on this host")
    ran = place.sh("man bash | head -5 | grep -qi bash")
    assert ran.status == 0 and ran.err == "", ran


def test_a_device_of_every_box_may_be_asked_for(place):
    ran = place.run("--devices", "/dev/null", "--", "sh", "-c", "echo gone >/dev/null && echo here")
    assert (ran.status, ran.out, ran.err) == (0, "here\n", ""), ran
