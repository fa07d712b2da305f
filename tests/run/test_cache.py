"""bawn cache: what a project's own caches hold is listed, and goes when it is told to."""
import json
import os
import subprocess
import time

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, place, select_ready

__all__ = ["place"]

CACHE = "~/.npm/_cacache"
# what a task may leave: no mode bits, odd names, links out, pipes, depth, a giant without blocks
HOSTILE = f"""
mkdir -p {CACHE}/a/b; cd {CACHE}
printf x > $'new\\nline'; printf x > $'esc\\e]0;x'; printf x > $'\\xff'
ln -s /etc link; ln -s ../../.. up; ln $'\\xff' hard; mkfifo pipe; truncate -s 1T giant
p=deep; for i in $(seq 300); do mkdir $p; cd $p; done; cd {CACHE}
mkdir upper work; chmod 000 a/b a; chmod 000 .
"""


class Caches:
    def __init__(self, place):
        self.place = place
        (place.work / "package.json").write_text("{}")

    def fill(self, script=f"echo 12345 > {CACHE}/entry"):
        ran = self.place.sh(script)
        assert ran.status == 0, ran

    def run(self, *words, status=0, **options):
        done = subprocess.run([BAWN, "cache", words[0], *self.place.options, *words[1:]],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/",
                              timeout=LIMIT_S, check=False, **options)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    def list(self):
        return json.loads(self.run("ls", "--json").stdout)["caches"]


@pytest.fixture
def caches(place):
    return Caches(place)


def test_nothing_there_is_nothing(caches):
    assert caches.list() == []
    assert caches.run("ls").stdout == ""
    caches.run("rm", "--all", "--yes")


def test_what_a_task_cached_is_listed(caches):
    before = time.time_ns()
    caches.fill()
    only, = caches.list()
    assert only["workspace"] == str(caches.place.work) and only["name"] == "npm"
    assert only["files"] == 1 and only["bytes"] > 0 and not only["in_use"] and not only["cut"]
    assert before - 10**9 < only["used_unix_ns"] < time.time_ns() + 10**9
    lines = caches.run("ls").stdout.splitlines()
    assert lines[0] == str(caches.place.work)
    assert lines[1].startswith(f"  {only['project']}/npm  ") and " 1 files " in lines[1]


def test_a_later_run_is_the_last_use(caches):
    caches.fill()
    first = caches.list()[0]["used_unix_ns"]
    caches.fill("true")
    assert caches.list()[0]["used_unix_ns"] > first


@pytest.mark.parametrize("word", ["one", "project", "workspace", "beginning", "all"])
def test_it_is_removed_and_the_next_run_finds_nothing(caches, word):
    caches.fill()
    project = caches.list()[0]["project"]
    words = {"one": f"{project}/npm", "project": project, "workspace": str(caches.place.work),
             "beginning": project[:6], "all": "--all"}
    done = caches.run("rm", "--yes", words[word])
    assert done.stdout.startswith(f"removed: {project}/npm"), done
    assert caches.list() == []
    ran = caches.place.sh(f"test ! -e {CACHE}/entry && echo new > {CACHE}/entry")
    assert ran.status == 0, ran
    assert len(caches.list()) == 1, "it can be used again"


def test_only_the_one_that_was_named_goes(caches):
    (caches.place.work / "go.mod").write_text("module x\n")
    caches.fill(f"echo x > {CACHE}/entry; echo x > ~/go/pkg/mod/entry")
    one, other = caches.list()
    caches.run("rm", "--yes", f"{one['project']}/{one['name']}")
    assert [left["name"] for left in caches.list()] == [other["name"]]


def test_what_is_poisoned_goes_whatever_it_is(caches):
    """Also the modes of the layer itself; and nothing that a link leads to."""
    caches.fill(HOSTILE)
    only, = caches.list()
    assert only["files"] > 300 and only["bytes"] < 1 << 30, "a sparse file takes no room"
    assert "\x1b" not in caches.run("ls").stdout
    caches.run("rm", "--yes", only["project"])
    assert caches.list() == []
    layers = caches.place.state / "caches" / only["project"] / "npm"
    assert os.listdir(layers / "upper") == os.listdir(layers / "work") == []
    assert (layers / "upper").stat().st_mode & 0o7777 == 0o700
    assert os.path.exists("/etc/passwd")
    ran = caches.place.sh(f"test ! -e {CACHE}/a && test ! -e {CACHE}/deep && mkdir {CACHE}/a")
    assert ran.status == 0, ran


def test_what_a_task_uses_is_not_removed(caches):
    caches.fill()
    project = caches.list()[0]["project"]
    child = caches.place.start("--stdin", "--", "bash", "-c", f"echo on; read x; cat {CACHE}/entry",
                               stdin=subprocess.PIPE)
    assert select_ready(child) == b"on\n"
    assert caches.list()[0]["in_use"]
    done = caches.run("rm", "--yes", project, status=1)
    assert f"{project}/npm is in use" in done.stderr and done.stdout == "", done
    out, _ = child.communicate(b"\n", timeout=LIMIT_S)
    assert out == b"12345\n"
    assert eventually(lambda: not caches.list()[0]["in_use"])
    caches.run("rm", "--yes", project)


def test_wrong_words(caches):
    caches.fill()
    project = caches.list()[0]["project"]
    for words, status, said in [
            ([], 2, "--all"), (["--all", project], 2, "--all"), ([project[:3]], 1, "no cache"),
            ([f"{project}/cargo-git"], 1, "no cache"), (["../.."], 1, "no cache"),
            (["/nowhere"], 1, "no cache"), ([f"{project}/"], 1, "no cache")]:
        done = caches.run("rm", "--yes", *words, status=status)
        assert said in done.stderr, done
    assert "--yes" in caches.run("rm", project, status=2).stderr, "nobody can be asked"
    assert len(caches.list()) == 1


def test_a_workspace_that_is_not_on_record_or_false_is_not_told(caches):
    caches.fill()
    project = caches.list()[0]["project"]
    note = caches.place.state / "caches" / project / ".workspace"
    note.write_text("/another")
    assert caches.list()[0]["workspace"] is None
    assert "not on record" in caches.run("ls").stdout
    note.unlink()
    caches.fill("true")
    assert caches.list()[0]["workspace"] == str(caches.place.work)


def test_inside_of_a_box_there_is_none(caches):
    ran = caches.place.run("--read", BAWN, "--", BAWN, "cache", "ls")
    assert ran.status == 1 and "inside of a box" in ran.err, ran


@pytest.mark.skipif(IS_ROOT, reason="root removes whatever it is")
def test_what_cannot_be_removed_is_said(caches):
    """A directory of somebody else's, which no task could have made."""
    caches.fill()
    layers = next((caches.place.state / "caches").glob("*/npm"))
    layers.chmod(0o500)
    try:
        done = caches.run("rm", "--yes", "--all", status=125)
        assert f"caches/{layers.parent.name}/npm" in done.stderr, done
    finally:
        layers.chmod(0o700)


@pytest.mark.parametrize("options", [(), ("--stage",), ("--ephemeral",)])
def test_the_state_directory_can_be_removed_by_hand(caches, options):
    """No work directory of an overlay, which have mode 000, stays in the way of rm -rf."""
    where = caches.place.work
    subprocess.run(["git", "init", "-q", where], check=True)
    ran = caches.place.run(*options, "--", "sh", "-c",
                           f"echo 1 >{CACHE}/entry; echo 1 >new; git config a.b c")
    assert ran.status == 0, ran
    assert any(caches.place.state.glob("**/upper")) or options, "an overlay was there"
    subprocess.run(["rm", "-rf", caches.place.state], check=True)
