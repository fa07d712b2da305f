"""What an action changed in a workspace that is written in place: told with what was before."""
import hashlib
import json
import os
import pathlib
import subprocess
import time

import pytest

from boxed import BAWN, select_ready
from live import live
from test_faults import injector

__all__ = ["injector", "live"]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Place:
    def __init__(self, base):
        self.workspace = base / "w"
        self.state = base / "state"
        self.workspace.mkdir()
        self.state.mkdir(mode=0o700)

    def run(self, script, *options):
        done = subprocess.run(
            [BAWN, "run", "--state-dir", self.state, "--json", *options, "--", "sh", "-c", script],
            cwd=self.workspace, capture_output=True, text=True, timeout=60)
        result = json.loads(done.stdout.splitlines()[-1])
        assert result["end"]["kind"] == "exited" and result["status"] == 0, (result, done.stderr)
        self.result = result
        return result["changes"]

    def told(self, script, *options):
        """{path below the workspace: change}"""
        changes = self.run(script, *options)
        paths = [os.path.relpath(change["path"], self.workspace) for change in changes]
        assert len(set(paths)) == len(paths)
        return dict(zip(paths, changes))

    def write(self, path, text):
        place = self.workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_each_kind(place):
    for name in ("same", "gone", "grown", "from", "mode"):
        place.write(f"src/{name}", name)
    os.symlink("same", place.workspace / "src/link")
    told = place.told("cd src; rm gone; echo more >>grown; mv from to; chmod 755 mode; mkdir new;"
                      " echo n >new/file; ln -sf grown link; mkfifo queue; sleep 0.05")
    assert {path: change["kind"] for path, change in told.items()} in (
        {"src/gone": "removed", "src/grown": "modified", "src/to": "renamed",
         "src/mode": kind, "src/new": "created", "src/new/file": "created",
         "src/link": "modified", "src/queue": "created"} for kind in ("attributes", "modified"))
    assert all(change["state"] == "applied" for change in told.values())
    grown = told["src/grown"]
    assert grown["before"]["bytes"] == 5 and grown["before_seen"] == "start"
    assert grown["after"] == {"type": "file", "mode": "%04o" % (os.stat(
        place.workspace / "src/grown").st_mode & 0o7777), "bytes": 10,
        "sha256": digest("grownmore\n")}
    assert told["src/to"]["from"] == str(place.workspace / "src/from")
    assert told["src/link"]["after"]["sha256"] == digest("grown")
    assert told["src/queue"]["after"]["type"] == "fifo"
    assert "after" not in told["src/gone"] and "before" not in told["src/new"]
    assert told["src/mode"]["after"]["mode"] == "0755"


@pytest.mark.parametrize("gone", ["a", "b", "c", "d", "e"])
def test_a_removal_alone_is_told_by_its_name(place, gone):
    for name in "ebdac":  # whatever order the directory has them in
        place.write(f"src/{name}", name)
    told = place.told(f"sleep 0.3; rm src/{gone}; sleep 0.05")
    assert {path: change["kind"] for path, change in told.items()} == {f"src/{gone}": "removed"}
    assert told[f"src/{gone}"]["before"]["sha256"] == digest(gone)


def test_nothing_is_no_change(place):
    place.write("a/file", "x")
    assert place.run("cat a/file; ls -R") == []
    assert place.run("true") == []


def test_size_and_time_are_kept(place):
    place.write("file", "one")
    assert place.run("sleep 0.1; cp -p file ref") and place.workspace.joinpath("ref").exists()
    told = place.told("printf two >file; touch -r ref file")
    change = told["file"]
    assert os.stat(place.workspace / "file").st_mtime_ns == \
        os.stat(place.workspace / "ref").st_mtime_ns
    assert change["kind"] == "modified" and "inferred" not in change
    assert change["before"]["sha256"] == digest("one")
    assert change["after"]["sha256"] == digest("two")


def test_a_file_saved_by_rename_is_modified(place):
    place.write("file", "one")
    told = place.told("printf two >file.new && mv file.new file")
    assert list(told) == ["file"] and told["file"]["kind"] == "modified"


def test_a_moved_directory_is_one_change(place):
    for i in range(5):
        place.write(f"old/sub/{i}", str(i))
    told = place.told("mv old new; echo more >new/sub/3; mv new/sub/4 five; rm new/sub/0")
    assert {path: change["kind"] for path, change in told.items()} == {
        "new": "renamed", "new/sub/3": "modified", "five": "renamed", "old/sub/0": "removed"}
    assert told["five"]["from"] == str(place.workspace / "old/sub/4")


def test_an_inode_number_that_comes_again_is_no_rename(place):
    place.write("old/file", "x")
    told = place.told("rm -r old; mkdir new; echo y >new/other")
    assert {path: change["kind"] for path, change in told.items()} == {
        "old": "removed", "old/file": "removed", "new": "created", "new/other": "created"}


def test_much_in_one_directory_is_one_row(place):
    told = place.told("mkdir -p nm/a nm/b; cd nm; for i in $(seq 200); do"
                      " echo $i >a/$i; echo $i >b/$i; done; echo x >../alone")
    assert set(told) == {"nm", "alone"} and told["nm"]["below"] == 402
    told = place.told("rm -r nm")
    assert set(told) == {"nm"}
    assert told["nm"]["kind"] == "removed" and told["nm"]["below"] == 402


def test_scattered_noise_is_bounded(place):
    for i in range(1500):
        place.write(f"d/{i % 50}/{i}", str(i))
    place.run("true")
    changes = place.run("for f in d/*/*; do echo x >>$f; done; echo y >alone")
    assert len(changes) <= 1024
    paths = {os.path.relpath(change["path"], place.workspace): change for change in changes}
    assert paths["alone"]["kind"] == "created"
    assert sum(change.get("below", 0) + 1 for change in changes) >= 1500


def test_the_task_before_is_remembered(place):
    """What a short action removes in a tree that is larger than what a start looks at."""
    for i in range(300):
        place.write(f"d/{i}", str(i))
    place.run("sleep 0.3")
    told = place.told("rm d/77; echo x >d/78")
    assert told["d/77"]["kind"] == "removed" and told["d/77"]["before"]["bytes"] == 2
    assert told["d/78"]["kind"] == "modified"
    assert told["d/78"]["before"]["sha256"] in (digest("78"), None)


def test_the_host_s_work_between_is_not_the_task_s(place):
    place.write("a", "one")
    place.run("true")
    place.write("a", "changed by the host")
    place.write("b", "new")
    assert place.run("true") == []


def test_hostile_names_and_giants(place):
    script = r"""
        printf x >"$(printf 'new\nline')"; printf x >"$(printf 'esc\033[2J')"
        printf x >"$(printf 'bad\377utf')"; truncate -s 1T giant; mkfifo pipe
        mkdir closed; echo x >closed/in; chmod 0 closed
        d=.; for i in $(seq 60); do d=$d/dddddddddddddddddddd; mkdir $d; done; echo x >$d/deep
    """
    changes = place.run(script)
    names = {change["path"][len(str(place.workspace)) + 1:]: change for change in changes}
    assert "new\nline" in names and "esc\x1b[2J" in names
    assert any("utf" in name and name.startswith("bad") for name in names)
    assert names["giant"]["after"] == {"type": "file", "mode": names["giant"]["after"]["mode"],
                                       "bytes": 1 << 40, "sha256": None}
    assert names["pipe"]["after"]["sha256"] is None
    assert names["closed"]["after"]["mode"] == "0000"
    os.chmod(place.workspace / "closed", 0o700)


def test_what_is_held_is_told_once(place):
    place.write("x", "x")
    changes = place.run("echo 'export A=1' >.envrc; echo y >y")
    states = sorted((os.path.basename(change["path"]), change["state"]) for change in changes)
    assert states == [(".envrc", "held"), ("y", "applied")]


def test_a_torn_cache_is_none(place):
    for i in range(100):
        place.write(f"d/{i}", str(i))
    place.run("sleep 0.2")
    kept, = (place.state / "trees").iterdir()
    whole = kept.read_bytes()
    for torn in (whole[:-1], whole[:200], whole[:300] + bytes(100) + whole[400:], b""):
        kept.write_bytes(torn)
        told = place.told("echo more >>d/5")
        assert told["d/5"]["kind"] == "modified" and told["d/5"]["after"]["bytes"]


def test_the_record_has_them(place):
    place.write("file", "one")
    place.run("printf two >file; echo n >new")
    chain, = (place.state / "trace/tasks").glob("*.jsonl")
    changes = [record["body"] for record in map(json.loads, chain.read_text().splitlines())
               if record["type"] == "change"]
    assert {(os.path.basename(c["path"]), c["kind"], c["after"]["sha256"]) for c in changes} == {
        ("file", "modified", digest("two")), ("new", "created", digest("n\n"))}
    assert subprocess.run([BAWN, "trace", "verify", "--state-dir", place.state],
                          capture_output=True, check=False).returncode == 0


def test_what_is_remembered_of_a_workspace_goes_with_it(place):
    """Whoever is the first to be remembered removes what is known of those that are gone."""
    trees, secrets = place.state / "trees", place.state / "secrets"
    first, gone = place.workspace, place.workspace.parent / "gone"
    gone.mkdir()
    place.write(".env", "TOKEN=x")
    place.run("echo x >file")
    kept = {path.name for path in trees.iterdir()}
    place.workspace = gone
    place.write(".env", "TOKEN=x")
    place.run("echo x >file")
    other, = {path.name for path in trees.iterdir()} - kept
    assert (secrets / other).exists()
    torn, writing = trees / ("0" * 16), trees / ".new-1"
    torn.write_bytes(b"torn")
    writing.write_bytes(b"")
    os.utime(writing, (0, 0))
    (trees / ".new-2").write_bytes(b"")
    subprocess.run(["rm", "-rf", gone], check=True)
    place.workspace = first
    place.run("echo y >file")
    assert (trees / other).exists(), "nobody looks where nothing is new"
    place.workspace = place.workspace.parent / "new"
    place.workspace.mkdir()
    place.run("echo x >file")
    names = {path.name for path in trees.iterdir()}
    assert kept < names and other not in names and len(names - kept) == 2, names
    assert ".new-2" in names and not (secrets / other).exists()
    assert {path.name for path in secrets.iterdir()} == kept
    # what is remembered of the one that is there is good still
    place.workspace = first
    assert place.told("sleep 0.3; echo z >file")["file"]["before"]["sha256"] == digest("y\n")


def test_what_is_remembered_is_bounded(place):
    """The newest stay."""
    place.run("echo x >file")
    kept, = (place.state / "trees").iterdir()
    head = kept.read_bytes()
    for number in range(300):
        workspace = str(place.workspace.parent / f"w{number:03}")
        os.mkdir(workspace)
        name = hashlib.sha256(workspace.encode()).hexdigest()[:16]
        at = head.index(os.fsencode(place.workspace))
        old = len(os.fsencode(place.workspace))
        text = bytearray(head[:at] + workspace.encode() + head[at + old:])
        text[20:24] = len(workspace).to_bytes(4, "little")
        (kept.parent / name).write_bytes(text)
        os.utime(kept.parent / name, (number, number))
    place.workspace = place.workspace.parent / "new"
    place.workspace.mkdir()
    place.run("echo x >file")
    left = list(kept.parent.iterdir())
    assert len(left) == 257 and kept in left
    assert min(path.stat().st_mtime for path in left) == 45


# --- places outside of the workspace --------------------------------------------------------------


def everywhere(place, script, *options):
    """{path below the base: change}"""
    changes = place.run(script, *options)
    base = place.workspace.parent
    found = {os.path.relpath(change["path"], base): change for change in changes}
    assert len(found) == len(changes)
    return found


@pytest.mark.parametrize("mode", [(), ("--stage",), ("--read-only",)])
def test_places_outside_are_told(place, mode):
    out, lone = place.workspace.parent / "out", place.workspace.parent / "lone"
    for path in (out / "deep/er", out / "kept"):
        path.mkdir(parents=True)
    for path in (out / "old", out / "gone", out / "deep/er/f", out / "kept/f", lone):
        path.write_text("old\n")
    script = (f"cd {out}; sleep 0.1; echo new >old; rm gone; echo x >deep/er/made; "
              "mv deep/er/f to; "
              f"echo more >>{lone}; (echo x >kept/f) 2>/dev/null; true")
    told = everywhere(place, script, "--write", out, "--write", lone, "--protect", out / "kept",
                      *mode)
    assert {path: change["kind"] for path, change in told.items()} == {
        "out/old": "modified", "out/gone": "removed", "out/deep/er/made": "created",
        "out/to": "renamed", "lone": "modified"}
    assert {change["state"] for change in told.values()} == {"applied"}
    assert told["lone"]["before"]["sha256"] == digest("old\n")
    assert told["lone"]["after"]["sha256"] == digest("old\nmore\n")
    assert told["out/old"]["after"]["sha256"] == digest("new\n")
    assert told["out/to"]["from"] == str(out / "deep/er/f")
    # what the last task saw is what this one had
    told = everywhere(place, f"sleep 0.3; echo newer >{out}/old", "--write", out, *mode)
    assert list(told) == ["out/old"] and told["out/old"]["before"]["sha256"] == digest("new\n")
    assert everywhere(place, f"cat {out}/old", "--write", out, *mode) == {}


def test_a_place_around_another_is_told_once(place):
    out = place.workspace.parent
    (out / "in").mkdir()
    told = everywhere(place, f"touch {out}/a {out}/in/b c", "--write", out / "in")
    assert set(told) == {"in/b", "w/c"}
    (out / "in/deep").mkdir()
    told = everywhere(place, f"touch {out}/in/d {out}/in/deep/e", "--write", out / "in",
                      "--write", out / "in/deep")
    assert set(told) == {"in/d", "in/deep/e"}


def test_many_places_are_cut(place):
    options = []
    for number in range(18):
        path = place.workspace.parent / f"out{number:02}"
        path.mkdir()
        options += ["--write", path]
    told = everywhere(place, "; ".join(f"touch {path}/f" for path in options[1::2]), *options)
    assert len(told) == 16 and place.result["changes_unlisted"] is None


def test_a_file_system_that_answers_slowly(live, injector):
    """What is not looked at in time is no secret: the result says that it is not known, and why."""
    other = live.base / "other"
    other.mkdir()
    child = live.start("--write", other, "--json", "--", "sh", "-c",
                       f"echo ready; while ! test -e {other}/go; do sleep 0.05; done; "
                       f"cd {other}; for i in $(seq 200); do echo x > f$i; done")
    assert select_ready(child) == b"ready\n"
    note = live.base / "note"
    # from here on each look at a name takes a tenth of a second
    with subprocess.Popen([injector, "of", str(child.pid), "slow", "262", note, "--", "/bin/sleep",
                           "60"]) as slow:
        time.sleep(0.5)
        (other / "go").touch()
        begun = time.monotonic()
        out, err = child.communicate(timeout=50)
        took = time.monotonic() - begun
        slow.kill()
    result = json.loads(out.splitlines()[-1])
    assert child.returncode == 0 and 4 < took < 15, (took, err)
    assert result["changes_unlisted"] is None, result
    assert "longer than 5 seconds" in result["changes_unknown"], result
    assert b"is not all known: looking through it took longer than 5 seconds" in err, err
    # one that answers is told as ever
    ran = live.sh(f"echo y > {other}/f1", "--write", other, "--json")
    assert "changes_unknown" not in ran.result and "changes_unlisted" not in ran.result, ran
