"""--input: what is handed to a task is there under its name, cannot be changed, and is told."""
import json
import os
import socket
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, place, refused

__all__ = ["place"]

INPUTS = "/run/bawn/input"


@pytest.fixture
def data(place):
    """A file and a directory beside the workspace."""
    folder = place.base / "data"
    (folder / "set/deep").mkdir(parents=True)
    (folder / "table.csv").write_text("1,2\n")
    (folder / "set/deep/a.txt").write_text("a\n")
    (folder / "set/run").write_text("#!/bin/sh\necho ran\n")
    (folder / "set/run").chmod(0o755)
    return folder


def words(place, verb, *options):
    return subprocess.run([BAWN, verb, *place.options, *options, "--json"], cwd=place.work,
                          capture_output=True, text=True, check=True, timeout=20).stdout


def test_files_and_directories_are_there_by_name(place, data):
    ran = place.sh(f"ls {INPUTS}; cat {INPUTS}/table.csv {INPUTS}/many/deep/a.txt; "
                   f"{INPUTS}/many/run",
                   "--input", data / "table.csv", "--input", f"{data}/set:many")
    assert (ran.status, ran.out) == (0, "many\ntable.csv\n1,2\na\nran\n"), ran
    place.assert_nothing_left()


def test_a_relative_path_and_a_name_with_a_colon(place, data):
    (place.work / "x:y").write_text("colon\n")
    ran = place.sh(f"cat {INPUTS}/*", "--input", "x:y:z", "--input", "../data/table.csv")
    assert (ran.status, ran.out) == (0, "1,2\ncolon\n"), ran


@pytest.mark.parametrize("options", [[], ["--nested-userns"]])
def test_nothing_of_it_can_be_changed(place, data, options):
    """Nor is there a place beside it."""
    tries = [f"echo x >> {INPUTS}/table.csv", f"touch {INPUTS}/set/new", f"rm {INPUTS}/set/run",
             f"mkdir {INPUTS}/new", f"mv {INPUTS}/set {INPUTS}/other", f"rmdir {INPUTS}/set",
             f"chmod 777 {INPUTS}/set", f"ln -s x {INPUTS}/new"]
    script = "; ".join(f"( {one} ) 2>/dev/null && echo done: '{one}'" for one in tries)
    ran = place.sh(script, "--input", data / "table.csv", "--input", data / "set", *options)
    assert "done" not in ran.out, ran
    assert (data / "table.csv").read_text() == "1,2\n"
    assert sorted(os.listdir(data / "set")) == ["deep", "run"]


def test_a_write_is_denied_in_words(place, data):
    ran = place.sh(f"echo x > {INPUTS}/table.csv", "--input", data / "table.csv")
    assert ran.status != 0
    assert f"bawn: denied: fs.write {INPUTS}/table.csv (flag --input, inferred)" in ran.err, ran
    assert f"to allow: --write {data}/table.csv" in ran.err, ran


def test_bad_kinds_names_and_places_are_refused(place, data):
    os.mkfifo(place.base / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.base / "socket"))
    os.symlink(data, place.work / "link")
    (data / "table2").mkdir()
    for status, given, word in [
            (125, [place.base / "fifo"], "fifo"),
            (126, [place.base / "socket"], "socket"),
            (125, [place.base / "nowhere"], "nowhere"),
            (125, [f"{data}:a\nb"], "--input"),
            (125, [f"{data}:.."], "--input"),
            (125, [":x"], "--input"),
            (125, [data / "table.csv", f"{data}/set:table.csv"], "table.csv"),
            (126, ["/proc"], "/proc"),
            (126, ["/:root"], "whole host"),
            (126, [place.state], "state"),
            (126, ["link/table.csv"], "link")]:
        options = [word for one in given for word in ("--input", one)]
        refused(place.run(*options, "--", "touch", "started"), place, status, word)


def test_what_is_hidden_is_hidden_in_an_input_too(place, data):
    """An input may lie above the workspace, or in it."""
    (place.work / "conf").mkdir()
    (place.work / "conf/key").write_text("secret")
    (place.work / "conf/open").write_text("open")
    hide = ["--hide", "conf/key"]
    look = f"cat {INPUTS}/i/key {INPUTS}/i/conf/key {INPUTS}/i/work/conf/key 2>/dev/null; " \
           f"cat {INPUTS}/i/open {INPUTS}/i/conf/open 2>/dev/null; true"
    for source in ("conf", "."):
        ran = place.sh(look, "--input", f"{source}:i", *hide)
        assert ran.out == "open", (source, ran)
    given = place.sh(f"cat {INPUTS}/key", "--input", "conf/key", *hide)
    assert given.out == "secret", "asked for by its own name"


def test_it_is_told(place, data):
    """In explain, in the plan, in the box, in the result and in the trace."""
    options = ["--input", f"{data}/table.csv:t"]
    shown = {"path": f"{INPUTS}/t", "source": str(data / "table.csv")}
    explained = words(place, "explain", *options)
    assert f"{INPUTS}/t = {data}/table.csv" in explained and "flag.input" in explained
    assert f"{INPUTS}/t" in words(place, "plan", *options)
    ran = place.run(*options, "--json", "--", "cat", "/run/bawn/policy.txt")
    assert f"{INPUTS}/t" in ran.out
    assert ran.result["inputs"] == [shown]
    lines = (place.state / "trace").rglob("*.jsonl")
    records = [json.loads(line) for file in lines for line in file.read_text().splitlines()]
    results = [record["body"] for record in records if record["type"] == "action.result"]
    assert [result["inputs"] for result in results] == [[shown]]


@pytest.mark.skipif(not IS_ROOT, reason="makes what only root may read")
def test_as_root_its_owner_is_the_task(place, data):
    (data / "table.csv").chmod(0o600)
    ran = place.sh(f"cat {INPUTS}/table.csv; stat -c %u {INPUTS}/table.csv",
                   "--input", data / "table.csv")
    assert ran.out == "1,2\n1000\n", ran
