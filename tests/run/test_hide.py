"""--hide and --protect against a host that renames, makes and moves the very names meanwhile.

A task in the box tries one path in a loop and counts, in a file of the workspace, how often it was
refused. Two refusals that were counted after a change on the host had returned prove that the
name is covered again: the second attempt began after the change.
"""
import os
import shutil
import statistics
import struct
import time

import pytest

from boxed import LIMIT_S, Ran, eventually, listing, place, refused

__all__ = ["place"]

RENAMES = 200
# Far above what is seen (0.1-0.3 ms idle): a loaded machine, no sign of a lost event.
WINDOW_MEDIAN_US = 50_000

# path, how to open it, the file for the counter, the file that ends it
PROBE = r"""
import errno, os, struct, sys
path, mode, counter, stop = sys.argv[1:]
out = os.open(counter, os.O_RDWR | os.O_CREAT, 0o600)
refused, seen = 0, set()
while not os.path.exists(stop):
    try:
        if os.path.isdir(path):
            seen.update(os.listdir(path))
        with open(path, mode) as file:
            seen.add(file.read() if mode == "r" else "writable")
    except IsADirectoryError:
        pass
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.ENOENT, errno.EROFS):
            raise
        refused += 1
        os.pwrite(out, struct.pack("=QQ", refused, error.errno), 0)
print(" ".join(sorted(seen)))
"""


class Probe:
    """A task that tries a path until it is told to stop."""

    def __init__(self, place, path, *options, mode="r"):
        self.place = place
        (place.work / "probe.py").write_text(PROBE)
        self.child = place.start("--json", *options, "--", "python3", "probe.py", path, mode,
                                 "counter", "stop")
        self.wait_refused()

    def state(self):
        try:
            data = (self.place.work / "counter").read_bytes()
        except FileNotFoundError:
            return 0, 0
        return struct.unpack("=QQ", data) if len(data) == 16 else (0, 0)

    def wait_refused(self):
        """Until the path was refused by an attempt that began after this call; gives errno."""
        start = self.state()[0]
        assert eventually(lambda: self.child.poll() is not None or
                          self.state()[0] >= start + 2, LIMIT_S), self.end()
        assert self.child.poll() is None, self.end()
        return self.state()[1]

    def end(self):
        (self.place.work / "stop").touch()
        out, err = self.child.communicate(timeout=LIMIT_S)
        return Ran(self.child.returncode, out, err)

    def finish(self):
        """What the task saw, and the structured result."""
        ran = self.end()
        assert ran.status == 0, ran
        self.place.assert_nothing_left()
        return ran.out.splitlines()[0].split(), ran.result


def put(path, text):
    """As an editor saves: a new file, renamed over the name."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.rename(new, path)


def covered(result, path=None):
    found = [change for change in result["changes"] if change["state"] == "covered"]
    return [change for change in found if path is None or change["path"] == str(path)]


def test_window_of_a_rename_over_a_hidden_file(place, record_property):
    secret = place.work / ".env"
    secret.write_text("first")
    probe = Probe(place, ".env", "--hide", ".env")
    for number in range(RENAMES):
        put(secret, f"secret{number}")
        probe.wait_refused()
    seen, result = probe.finish()
    changes = covered(result, secret)
    assert len(changes) == RENAMES
    assert {change["kind"] for change in changes} == {"replaced"}
    windows = [change["window_us"] for change in changes]
    text = (f"{RENAMES} renames: window min {min(windows)}, median "
            f"{statistics.median(windows):.0f}, max {max(windows)} us; read meanwhile: {len(seen)}")
    print(text)
    record_property("window", text)
    assert statistics.median(windows) < WINDOW_MEDIAN_US, text
    assert secret.read_text() == f"secret{RENAMES - 1}"


def test_removed_and_made_again(place):
    secret = place.work / ".env"
    secret.write_text("first")
    probe = Probe(place, ".env", "--hide", ".env")
    for number in range(10):
        secret.unlink()
        secret.write_text(f"secret{number}")
        probe.wait_refused()
        # moved away with its mask, then another object in its place
        os.rename(secret, place.work / "aside")
        secret.write_text(f"other{number}")
        assert eventually(lambda: probe.wait_refused() == 13)
    _, result = probe.finish()
    assert len(covered(result, secret)) >= 10


def test_hidden_directory_is_replaced(place):
    hidden = place.work / "keys"
    hidden.mkdir()
    (hidden / "first").touch()
    probe = Probe(place, "keys/first", "--hide", "keys")
    for number in range(20):
        new = place.work / f"new{number}"
        new.mkdir()
        (new / "first").write_text("secret")
        os.rename(hidden, place.work / f"old{number}")
        os.rename(new, hidden)
        probe.wait_refused()
    _, result = probe.finish()
    assert len(covered(result, hidden)) == 20


@pytest.mark.parametrize("name", [".env", "sub/.env", "sub/deep/er/.env"])
def test_name_that_appears_later(place, name):
    (place.work / "sub").mkdir()
    before = listing(place.work)
    assert place.sh("ls -A", "--hide", name).status == 0
    assert listing(place.work) == before, "a stub was left in the user's tree"
    probe = Probe(place, name, "--hide", name)
    secret = place.work / name
    secret.parent.mkdir(parents=True, exist_ok=True)
    secret.write_text("secret")
    assert eventually(lambda: probe.wait_refused() == 13)
    put(secret, "another")
    assert probe.wait_refused() == 13
    _, result = probe.finish()
    assert [change["kind"] for change in covered(result, secret)] == ["created", "replaced"]
    assert secret.read_text() == "another"


def test_directory_above_is_replaced(place):
    secret = place.work / "conf" / "deep" / "key"
    secret.parent.mkdir(parents=True)
    secret.write_text("first")
    probe = Probe(place, "conf/deep/key", "--hide", "conf/deep/key")
    for number in range(10):
        new = place.work / f"new{number}"
        (new / "deep").mkdir(parents=True)
        (new / "deep" / "key").write_text("secret")
        os.rename(place.work / "conf", place.work / f"old{number}")
        os.rename(new, place.work / "conf")
        assert eventually(lambda: probe.wait_refused() == 13)
    _, result = probe.finish()
    assert len(covered(result, secret)) == 10


def test_directories_above_stay_in_place_after_the_change(place):
    secret = place.work / "conf" / "key"
    secret.parent.mkdir()
    secret.write_text("first")
    child = place.start("--json", "--hide", "conf/key", "--", "bash", "-c",
                        "touch ready; until [ -e go ]; do :; done; mv conf other; cat conf/key; "
                        "true")
    assert eventually((place.work / "ready").exists, LIMIT_S)
    os.rename(place.work / "conf", place.work / "old")
    secret.parent.mkdir()
    secret.write_text("secret")
    # a second run of the same options shows what the first one reports too
    probe = Probe(place, "conf/key", "--hide", "conf/key")
    (place.work / "go").touch()
    out, err = child.communicate(timeout=LIMIT_S)
    probe.finish()
    assert b"secret" not in out and b"busy" in err, (out, err)
    assert not (place.work / "other").exists()


def test_protected_file_is_replaced(place):
    kept = place.work / "ci.yml"
    kept.write_text("first")
    probe = Probe(place, "ci.yml", "--protect", "ci.yml", mode="r+")
    for number in range(20):
        put(kept, f"text{number}")
        assert probe.wait_refused() == 30
    _, result = probe.finish()
    assert len(covered(result, kept)) == 20
    assert kept.read_text() == "text19"


def test_protected_directory_is_replaced(place):
    kept = place.work / "ci"
    kept.mkdir()
    (kept / "file").write_text("first")
    probe = Probe(place, "ci/file", "--protect", "ci", mode="r+")
    os.rename(kept, place.work / "old")
    kept.mkdir()
    (kept / "file").write_text("second")
    assert probe.wait_refused() == 30
    _, result = probe.finish()
    assert covered(result, kept) and (kept / "file").read_text() == "second"


def test_protected_name_that_becomes_a_link_ends_the_task(place):
    kept = place.work / "ci.yml"
    kept.write_text("first")
    probe = Probe(place, "ci.yml", "--protect", "ci.yml", mode="r+")
    kept.unlink()
    kept.symlink_to("probe.py")
    out, err = probe.child.communicate(timeout=LIMIT_S)
    ran = Ran(probe.child.returncode, out, err)
    assert ran.status == 137 and ran.result["cause"] == "policy", ran
    assert "ci.yml" in ran.err and "link" in ran.err, ran
    place.assert_nothing_left()


def test_hidden_name_that_becomes_a_link(place):
    secret, behind = place.work / ".env", place.work / "env.local"
    secret.write_text("first")
    behind.write_text("secret")
    probe = Probe(place, ".env", "--hide", ".env")
    secret.unlink()
    secret.symlink_to("env.local")
    assert eventually(lambda: probe.wait_refused() == 13)
    _, result = probe.finish()
    assert covered(result, secret)


def test_hidden_link_becomes_a_file(place):
    link, behind = place.work / ".env", place.work / "env.local"
    behind.write_text("first")
    link.symlink_to("env.local")
    probe = Probe(place, ".env", "--hide", ".env")
    put(link, "secret")
    assert eventually(lambda: probe.wait_refused() == 13)
    _, result = probe.finish()
    assert covered(result, link)


def test_link_out_of_the_workspace_is_left_alone(place):
    secret = place.work / ".env"
    secret.write_text("first")
    probe = Probe(place, ".env", "--hide", ".env")
    secret.unlink()
    secret.symlink_to("/etc/passwd")
    assert place.sh("cat .env", "--hide", "other").out.startswith("root:")
    _, result = probe.finish()
    assert covered(result, secret) == []


def test_read_only_tree_in_the_workspace_is_replaced(place):
    kept = place.work / "vendor"
    kept.mkdir()
    (kept / "file").write_text("first")
    probe = Probe(place, "vendor/file", "--read", kept, mode="r+")
    os.rename(kept, place.work / "old")
    kept.mkdir()
    (kept / "file").write_text("second")
    assert eventually(lambda: probe.wait_refused() == 30)
    _, result = probe.finish()
    assert covered(result, kept) and (kept / "file").read_text() == "second"


def test_overlay_in_the_workspace_cannot_be_made_again(place):
    kept = place.work / "vendor"
    kept.mkdir()
    (kept / "secret").write_text("first")
    probe = Probe(place, "vendor/secret", "--read", kept, "--hide", kept / "secret")
    os.rename(kept, place.work / "old")
    kept.mkdir()
    (kept / "secret").write_text("second")
    out, err = probe.child.communicate(timeout=LIMIT_S)
    ran = Ran(probe.child.returncode, out, err)
    assert ran.status == 137 and ran.result["cause"] == "policy", ran
    assert "vendor" in ran.err and "replaced on the host" in ran.err, ran


def test_writable_row_in_the_workspace_changes_nothing(place):
    secret = place.work / "sub" / "deep" / "key"
    secret.parent.mkdir(parents=True)
    secret.write_text("first")
    options = ["--write", place.work / "sub", "--hide", "sub/deep/key"]
    ran = place.sh("mv sub other; mv sub/deep sub/other; ls sub; true", *options)
    assert ran.err.count("busy") == 2 and ran.out == "deep\n", ran
    probe = Probe(place, "sub/deep/key", *options)
    os.rename(place.work / "sub", place.work / "old")
    secret.parent.mkdir(parents=True)
    secret.write_text("secret")
    assert eventually(lambda: probe.wait_refused() == 13)
    _, result = probe.finish()
    assert covered(result, secret)


@pytest.mark.parametrize("name", ["secret", "sub/secret", "later"])
def test_read_only_view_has_no_window_at_all(place, name):
    data = place.base / "data"
    (data / "sub").mkdir(parents=True)
    for start in ("secret", "sub/secret"):
        (data / start).write_text("first")
    (data / "shown").write_text("shown")
    probe = Probe(place, str(data / name), "--read", data, "--hide", data / name)
    for number in range(100):
        put(data / name, f"secret{number}")
        assert probe.wait_refused() == 2
    (data / name).unlink()
    (data / name).write_text("last")
    assert probe.wait_refused() == 2
    seen, result = probe.finish()
    # those of the probe's own files in the workspace are none of these
    assert seen == [] and not [change for change in result["changes"]
                               if change["path"].startswith(f"{data}/")]
    ran = place.sh(f"cat {data}/shown; ls -A {data} {data}/sub", "--read", data, "--hide",
                   data / name)
    assert "shown" in ran.out and ran.out.split().count("secret") == (2 if name == "later" else 1)


def enforcement(result, layer):
    return [row["enforcement"] for row in result["layers"] if row["layer"] == layer]


def test_result_says_how_well_a_name_is_hidden(place):
    data = place.base / "data"
    data.mkdir()
    for folder in (data, place.work):
        (folder / "name").touch()
    for options, hide, protect in (
            ([], [], []), (["--read", data, "--hide", data / "name"], ["exact"], []),
            (["--hide", "name"], ["polled"], []),
            (["--protect", "name"], [], ["polled"])):
        result = place.run("--json", *options, "--", "true").result
        found = enforcement(result, "hide"), enforcement(result, "protect")
        assert found == (hide, protect), (options, found)


def test_deny_inside_allow(place):
    data = place.base / "data"
    (data / "in").mkdir(parents=True)
    (data / "in" / "file").write_text("secret")
    (place.work / "sub" / "in").mkdir(parents=True)
    (place.work / "sub" / "in" / "file").write_text("secret")
    for options in (["--read", data, "--hide", data / "in", "--read", data / "in" / "file"],
                    ["--read", data / "in", "--hide", data / "in"],
                    ["--hide", data, "--read", data / "in"]):
        ran = place.sh(f"cat {data}/in/file", *options)
        assert ran.status == 1 and "secret" not in ran.out, (options, ran)
    ran = place.sh("cat sub/in/file", "--hide", "sub", "--write", place.work / "sub" / "in")
    assert ran.status == 1 and "secret" not in ran.out, ran


def test_glob_hides_each_match_and_their_saves(place):
    for name in ("a.pem", "sub/b.pem", "sub/deep/c.pem"):
        (place.work / name).parent.mkdir(parents=True, exist_ok=True)
        (place.work / name).write_text("secret")
    probe = Probe(place, "sub/deep/c.pem", "--hide", "**/*.pem")
    put(place.work / "sub" / "deep" / "c.pem", "other")
    probe.wait_refused()
    probe.finish()
    ran = place.sh("cat a.pem sub/b.pem sub/deep/c.pem; true", "--hide", "**/*.pem")
    assert ran.out == "" and ran.err.count("Permission denied") == 3, ran


def test_nothing_inside_uncovers_a_name(place):
    (place.work / "conf").mkdir()
    (place.work / "conf" / "key").write_text("secret")
    before = (place.work / "conf" / "key").stat()
    ran = place.sh("""
        mv conf other; mv conf/key other; rm -rf conf; ln conf/key copy; cp conf/key copy2
        echo x > new; mv new conf/key; chmod 644 conf/key; cat conf/key copy copy2 other/key
        python3 -c "import os; os.rename('new', 'conf/key')"; true""", "--hide", "conf/key")
    assert ran.status == 0 and "secret" not in ran.out, ran
    after = (place.work / "conf" / "key").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert (place.work / "conf" / "key").read_text() == "secret"


@pytest.mark.parametrize("options", [["--hide", "one"], ["--protect", "one"],
                                     ["--hide", "o*"], ["--stage", "--hide", "one"],
                                     ["--ephemeral", "--hide", "o*"],
                                     ["--read-only", "--hide", "one"]], ids=" ".join)
def test_hard_links_are_refused(place, options):
    (place.work / "one").write_text("secret")
    os.link(place.work / "one", place.work / "two")
    refused(place.run(*options, "--", "touch", "started"), place, 125, "one", "hard links")


def test_a_protected_file_of_a_layer_is_not_changed_by_another_name(place):
    (place.work / "one").write_text("kept\n")
    os.link(place.work / "one", place.work / "two")
    ran = place.sh("echo x > two; cat one", "--ephemeral", "--protect", "one")
    assert (ran.status, ran.out) == (0, "kept\n"), ran
    assert (place.work / "two").read_text() == "kept\n"


def test_hide_strict(place):
    data = place.base / "data"
    data.mkdir()
    (data / "secret").write_text("secret")
    (data / "shown").write_text("shown")
    (place.work / ".env").write_text("secret")
    refused(place.run("--hide-strict", "--hide", ".env", "--", "touch", "started"), place, 125,
            "--hide-strict", ".env")
    refused(place.run("--hide-strict", "--hide", "later", "--", "touch", "started"), place, 125,
            "--hide-strict", "later")
    ran = place.sh(f"cat {data}/shown {data}/secret", "--hide-strict", "--read", data, "--hide",
                   data / "secret")
    assert "shown" in ran.out and "secret" not in ran.out, ran


def test_a_flood_of_names_neither_uncovers_nor_delays_the_clock(place):
    secret = place.work / ".env"
    secret.write_text("first")
    child = place.start("--json", "--timeout", "3s", "--hide", ".env", "--", "python3", "-c",
                        "import os\n"
                        "while True:\n"
                        "    for n in range(2000): os.close(os.open(f'f{n}', os.O_CREAT))\n"
                        "    for n in range(2000): os.unlink(f'f{n}')\n")
    assert eventually((place.work / "f1").exists, LIMIT_S)
    start = time.monotonic()
    put(secret, "secret")
    out, err = child.communicate(timeout=LIMIT_S)
    ran = Ran(child.returncode, out, err)
    assert ran.status == 124 and time.monotonic() - start < 10, ran
    assert covered(ran.result, secret), ran


def watches(pid):
    found = []
    # which nobody may read while it enters a command
    assert eventually(lambda: os.access(f"/proc/{pid}/fd", os.R_OK), LIMIT_S)
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            pass
    return [link for link in found if "inotify" in link]


@pytest.mark.parametrize("options, count", [
    ([], 0), (["--hide", "name"], 1), (["--read", "/usr/share", "--hide", "/usr/share/doc"], 0)])
def test_watch_costs_nothing_where_it_is_not_needed(place, options, count):
    child = place.start(*options, "--", "bash", "-c",
                        "touch ready; until [ -e stop ]; do read -t 0.01 <> <(:); done")
    try:
        assert eventually((place.work / "ready").exists, LIMIT_S)
        assert len(watches(child.pid)) == count
    finally:
        (place.work / "stop").touch()
        child.communicate(timeout=LIMIT_S)


def test_directory_that_cannot_be_watched_is_refused(place):
    if os.geteuid() == 0:
        pytest.skip("root reads every directory")
    (place.work / "blind").mkdir()
    (place.work / "blind" / "key").write_text("secret")
    (place.work / "blind").chmod(0o300)
    refused(place.run("--hide", "blind/key", "--", "touch", "started"), place, 125, "blind",
            "readable")
    shutil.rmtree(place.work / "blind", ignore_errors=True)
