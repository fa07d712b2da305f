"""What a task can use up: the same words everywhere, wrong values, and exact limits met."""
import json
import os
import re
import resource
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, ROOT, eventually, place, refused
from live import live

__all__ = ["live", "place"]

FORMS = {
    "--timeout": "not a duration", "--cpu-time": "not a duration", "--grace": "not a duration",
    "--cpus": "not a number of processors", "--memory": "not a size", "--disk": "not a size",
    "--output-cap": "not a size", "--pids": "not a count", "--files": "not a count",
    "--inodes": "not a count", "--io": "not a rate",
}
ABSENT = "absent"


def wrong_values():
    """(option, value): 0, a sign, blanks, too many digits, no number, another limit's unit."""
    for option, form in FORMS.items():
        other = "30s" if "duration" not in form else "512M"
        for value in ("0", "-1", "+1", " 1", "1 ", "", "x", "NaN", "0x10", "1e3",
                      "9" * 30, "9" * 400, "1\n", "1.5.5", other):
            yield option, value


def verb(place, name, *arguments, **options):
    state = [] if name == "doctor" else place.options
    return subprocess.run([BAWN, name, *state, *map(str, arguments)], capture_output=True,
                          text=True, cwd=place.work, timeout=20, check=False, **options)


def told_by(place, name, *arguments):
    ran = verb(place, name, "--json", *arguments)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


def explained(place, *arguments):
    """{word: row} of explain."""
    rows = told_by(place, "explain", *arguments)["resources"]
    return {line["limit"]["limit"]: line["limit"] for line in rows}


def means(row):
    """As limit_means_print() has it."""
    grain = row["grain_ms"]
    seconds = f"{grain // 1000}s" if grain % 1000 == 0 else f"{grain}ms"
    return (f"{row['enforcement']} ({seconds}; {row['mechanism']})" if grain else
            f"{row['enforcement']} ({row['mechanism']})")


# --- wrong values

@pytest.mark.parametrize("option, value", list(wrong_values()))
def test_wrong_value(place, option, value):
    """Option, value and form are named, before anything is done."""
    ran = place.run(option, value, "--", "touch", "started")
    refused(ran, place, 125, option)
    assert re.search("not a |too large|too small|out of range", ran.err), ran
    assert len(ran.err) < 400, "a long value is repeated whole"
    if value in ("x", "-1", "0x10"):
        assert FORMS[option] in ran.err, ran


@pytest.mark.parametrize("option", FORMS)
def test_no_value(place, option):
    refused(place.run(option), place, 125, option)


@pytest.mark.parametrize("option, value", [("--pids", "7"), ("--files", "31"), ("--inodes", "255"),
                                           ("--memory", "1M"), ("--disk", "1K"), ("--io", "1K/s"),
                                           ("--cpus", "0.001"), ("--pids", "4194305"),
                                           ("--files", "1048577"), ("--cpus", "4097"),
                                           ("--grace", "2h")])
def test_out_of_range(place, option, value):
    ran = place.run(option, value, "--", "touch", "started")
    refused(ran, place, 125, option, value)
    assert "at least" in ran.err or "from " in ran.err, "the bounds are not told"


def test_an_option_stands_once(place):
    """Two values for one limit are a mistake of somebody, and no guess is made."""
    refused(place.run("--pids", "64", "--pids", "100", "--", "touch", "started"), place, 125,
            "--pids")


@pytest.mark.parametrize("name", ["plan", "explain"])
def test_other_verbs_refuse_the_same(place, name):
    ran = verb(place, name, "--memory", "lots")
    assert ran.returncode == 2 and "--memory" in ran.stderr and "not a size" in ran.stderr, ran


# --- what cannot be held

def unheld(place):
    """(option, value) of limits that this host does not hold when they are asked for."""
    values = {"--cpus": "1.5", "--io": "50M/s", "--memory": "1G", "--pids": "100",
              "--cpu-time": "1h", "--disk": "1G", "--inodes": "1000"}
    for row in told_by(place, "doctor")["limits"]:
        if row["enforcement"] == ABSENT and row["option"] in values:
            yield row, values[row["option"]]


def test_what_cannot_be_held_is_refused_in_the_words_of_doctor(place):
    rows = list(unheld(place))
    for row, value in rows:
        ran = place.run(row["option"], value, "--", "touch", "started")
        refused(ran, place, 125, row["option"], row["mechanism"], row["remedy"],
                "cannot be held here")
    if not rows:
        pytest.skip("this host holds every limit")


def group_of(child, place):
    """The directories of the run's control groups."""
    assert eventually(lambda: (place.work / "started").exists())
    name = "bawn-" + os.listdir(place.state / "tasks")[0]
    return [os.path.join(base, name) for base, folders, _ in os.walk("/sys/fs/cgroup")
            if name in folders]


@pytest.mark.skipif(not IS_ROOT, reason="only root makes control groups here")
def test_a_group_that_vanishes_ends_the_task(place):
    """Its processes are moved out and it is removed, by whoever owns the host."""
    child = place.start("--json", "--memory", "512M", "--", "sh", "-c", "touch started; sleep 60")
    groups = group_of(child, place)
    if not groups:
        child.kill()
        pytest.skip("this host lets nobody make a control group")
    for group in groups:
        def is_removed(group=group):
            with open(os.path.join(group, "cgroup.procs")) as file:
                for pid in file.read().split():
                    with open(os.path.join(os.path.dirname(group), "cgroup.procs"), "w") as up:
                        up.write(pid)
            try:
                os.rmdir(group)
            except OSError:
                return False
            return True
        assert eventually(is_removed)
    out, err = child.communicate(timeout=LIMIT_S)
    result = json.loads(out)
    assert child.returncode == 137, (out, err)
    assert "was removed" in result["message"] and result["cause"] == "limit", (out, err)
    place.assert_nothing_left()


def test_a_limit_above_the_callers_own(place):
    ran = place.run("--files", "2000", "--", "touch", "started", prefix=["prlimit", "-n1000"])
    refused(ran, place, 125, "--files", "2000", "1000")


@pytest.mark.skipif(IS_ROOT, reason="root makes control groups of version 1")
@pytest.mark.parametrize("option, value", [("--cpus", "1"), ("--io", "1M/s")])
def test_an_ordinary_user_without_a_group(place, option, value):
    if not any(row["option"] == option for row, _ in unheld(place)):
        pytest.skip("the user has a control group of its own")
    refused(place.run(option, value, "--", "touch", "started"), place, 125, option, "Delegate=")


# --- the same words

def document(name, title):
    return (ROOT / name).read_text().partition(title)[2].partition("\n## ")[0]


def specified():
    """{word: cells} of the specification's table."""
    rows = {}
    for line in document("docs/SPECIFICATION.md", "## What a task can use up").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 5 and cells[0] != "limit":
            rows[cells[0]] = cells[1:]
    return rows


GPU = "gpu share"


def test_the_words_of_doctor_and_explain(place):
    doctor = [row for row in told_by(place, "doctor")["limits"]
              if row["built_in"]["limit"] != GPU]
    rows = explained(place)
    assert list(rows) == [row["built_in"]["limit"] for row in doctor]
    text = " ".join(verb(place, "explain").stdout.split())
    for row in doctor:
        # whoever asked for nothing gets what is built in
        assert rows[row["built_in"]["limit"]] == row["built_in"]
        assert row["built_in"]["text"] in text
        assert (row["remedy"] is None) == (row["enforcement"] != ABSENT)
    printed = verb(place, "doctor").stdout
    for row in doctor:
        assert means(row) in printed, row
        if row["built_in"]["value"] is not None:
            assert means(row["built_in"]) in printed, row


def test_what_is_asked_for_is_held_as_doctor_says(place):
    values = {"--cpus": "1.5", "--memory": "512M", "--pids": "100", "--files": "64",
              "--cpu-time": "1h", "--disk": "1G", "--inodes": "1000", "--output-cap": "1M",
              "--grace": "1s", "--timeout": "90s"}
    for row in told_by(place, "doctor")["limits"]:
        if row["option"] not in values or row["enforcement"] == ABSENT:
            continue
        word, value = row["built_in"]["limit"], values[row["option"]]
        found = explained(place, row["option"], value)[word]
        assert means(found) == means(row)
        assert found["text"] == f"{word}: {value}, {means(row)}"


@pytest.mark.parametrize("arguments", [[], ["--memory", "512M", "--timeout", "90s"],
                                       ["--disk", "1G", "--pids", "100"]])
def test_the_result_says_what_explain_says(place, arguments):
    ran = place.run("--json", *arguments, "--", "true")
    assert ran.status == 0, ran
    assert {row["limit"]: row for row in ran.result["limits"]} == explained(place, *arguments)


# a /dev of the test's own, in which a terminal has the name of a GPU
DEV = r"""
set -e
mount -t tmpfs -o mode=755 dev "$1" && mkdir "$1/dri" "$1/pts"
for name in null zero full random urandom tty ptmx; do
	: >"$1/$name" && mount --bind "/dev/$name" "$1/$name"
done
mount --rbind /dev/pts "$1/pts"
: >"$1/dri/renderD128" && mount --bind /dev/tty "$1/dri/renderD128"
mount --rbind "$1" /dev
shift && exec "$@"
"""


def test_a_gpu_is_held_by_nothing_and_that_is_told(place):
    """By explain and the result, as by doctor, where one is shown; else by doctor alone."""
    (place.base / "dev").mkdir()
    prefix = ["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private", "sh", "-c", DEV,
              "sh", str(place.base / "dev")]
    if not IS_ROOT and subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("this host lets nobody mount")
    granted = ["--devices", "/dev/dri/renderD128"]
    told = next(row for row in told_by(place, "doctor")["limits"]
                if row["built_in"]["limit"] == GPU)
    assert told["option"] is None and told["enforcement"] == ABSENT and told["remedy"]
    wanted = told["built_in"]
    assert wanted["text"] == f"{GPU}: none, {means(told)}" and wanted["value"] is None

    explain = subprocess.run([*prefix, BAWN, "explain", *place.options, *granted, "--json"],
                             cwd=place.work, check=True, timeout=LIMIT_S, capture_output=True)
    lines = json.loads(explain.stdout)["resources"]
    assert wanted in [line["limit"] for line in lines]
    ran = place.run("--json", *granted, "--", "sh", "-c", "test -c /dev/dri/renderD128",
                    prefix=prefix)
    assert ran.status == 0 and wanted in ran.result["limits"], ran
    assert [row["limit"] for row in ran.result["limits"]] == \
        [line["limit"]["limit"] for line in lines]
    assert GPU not in explained(place)
    assert GPU not in [row["limit"] for row in place.run("--json", "--", "true").result["limits"]]


def test_the_result_has_what_is_in_force(place):
    """The caller's own limit is lower than what was built in: read back, and told."""
    ran = place.run("--json", "--", "sh", "-c", "ulimit -Hn", prefix=["prlimit", "-n1000"])
    row = next(row for row in ran.result["limits"] if row["limit"] == "open files")
    assert row["value"] == 1000 == int(ran.out.split()[0]), ran


def test_the_words_of_the_documents(place):
    doctor, table = told_by(place, "doctor")["limits"], specified()
    security = document("SECURITY.md", "## What is not a boundary")
    assert list(table) == [row["built_in"]["limit"] for row in doctor]
    for row in doctor:
        word = row["built_in"]["limit"]
        option, default, built_in, asked = table[word]
        assert option.strip("`") == (row["option"] or "")
        assert default == "none" or f"{word}: " in row["built_in"]["text"]
        said = built_in if asked == "the same" else f"{built_in}; {asked}"
        assert means(row) in said, (word, means(row))
        if row["built_in"]["value"] is not None:
            assert means(row["built_in"]) == built_in
        if row["built_in"]["enforcement"] != "exact" and word not in ("wall clock",):
            assert f"*{word}*" in " ".join(security.split()), f"SECURITY.md says nothing of {word}"
    for word in ("exact", "polled", "absent"):
        assert f"*{word}" in security


def test_defaults_of_the_documents_are_those_of_the_table():
    """SPECIFICATION has what the man page has, which is written from limit.def."""
    page = (ROOT / "man/bawn.1").read_text().replace("\\-", "-")
    for word, (option, default, _, _) in specified().items():
        option = option.strip("`")
        assert f"\n{word:16}{default:10}{option}".rstrip() + "\n" in page, word


# --- met: the kernel refuses the first one beyond

def test_processes_exactly(place):
    """A fork bomb has as many processes as were given, and not one more."""
    script = """
import os, sys
made = 0
while True:
    try:
        pid = os.fork()
    except BlockingIOError:
        break
    if pid == 0:
        import signal
        signal.pause()
    made += 1
print(made)
sys.stdout.flush()
"""
    most = 40
    ran = place.run("--pids", most, "--", "python3", "-c", script)
    assert ran.status == 0, ran
    # process 1 counts, and the bomb itself
    assert int(ran.out) in (most - 1, most - 2), ran
    place.assert_nothing_left()


def test_threads_count(place):
    script = """
import threading
stop, made = threading.Event(), 0
try:
    while made < 200:
        threading.Thread(target=stop.wait, daemon=True).start()
        made += 1
except RuntimeError:
    pass
print(made)
stop.set()
"""
    ran = place.run("--pids", "30", "--", "python3", "-c", script)
    assert ran.status == 0 and 20 <= int(ran.out) < 30, ran


def test_a_fork_bomb_ends_with_its_run(place):
    ran = place.sh(":(){ :|:& };:; sleep 0.3; echo survived", "--pids", "64", "--timeout", "10s")
    assert ran.status is not None
    place.assert_nothing_left()


def test_open_files_exactly(place):
    script = """
import os
made = []
try:
    while True:
        made.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(error.errno, made[-1])
"""
    ran = place.run("--files", "50", "--", "python3", "-c", script)
    assert ran.out.split() == ["24", "49"], ran
    raised = place.sh("ulimit -n 51", "--files", "50")
    assert raised.status != 0, "the limit could be raised"


def test_a_full_area(place):
    """/tmp, home and the rest are one area: ENOSPC at its size; the workspace has room."""
    script = ("head -c 60M /dev/zero >/tmp/a; head -c 60M /dev/zero >~/b || true; "
              "stat -c %s /tmp/a ~/b; head -c 1M /dev/zero >kept && echo kept")
    ran = place.sh(script, "--disk", "100M")
    first, second, word = ran.out.split()
    assert "No space left on device" in ran.err and word == "kept", ran
    assert 99 << 20 <= int(first) + int(second) <= 100 << 20
    place.assert_nothing_left()


def test_no_more_files_in_an_area(place):
    script = """
import os
made = 0
try:
    while made < 1000:
        os.close(os.open(f"/tmp/{made}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    print(error.errno, made)
"""
    ran = place.run("--inodes", "300", "--", "python3", "-c", script)
    number, made = map(int, ran.out.split())
    # directories of the areas themselves are files, too
    assert number == 28 and 200 <= made < 300, ran


def test_shared_memory_is_of_the_area(place):
    ran = place.sh("head -c 30M /dev/zero >/dev/shm/a", "--disk", "20M")
    assert ran.status != 0 and "No space left" in ran.err, ran


def test_no_core_dump(place):
    ran = place.sh("ulimit -c unlimited 2>/dev/null; ulimit -Hc; kill -SEGV $$", "--json")
    assert ran.status == 139 and ran.result["end"]["core_dumped"] is False, ran
    assert ran.out.split()[0] in ("0", "1"), ran


def test_the_kernel_takes_a_task_first(place):
    ran = place.sh("cat /proc/self/oom_score_adj; echo -1000 >/proc/self/oom_score_adj")
    assert int(ran.out) > 0 and ran.status != 0, ran


def test_no_hard_limit_makes_core_dumps_weaker(place):
    """0 does not stop a core_pattern that is a pipe, 1 does: that or nothing (core(5))."""
    child = place.start("--", "grep", "core file", "/proc/self/limits",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    out, err = child.communicate(timeout=LIMIT_S)
    if child.returncode == 0:
        assert out.split()[4:6] == [b"1", b"1"], out
    else:
        assert child.returncode == 125 and b"core limit" in err and not out, (out, err)



HOG = "x = bytearray(200 << 20); import time; time.sleep(20)"


def test_a_limit_holds_again_in_a_live_task(live):
    """The task goes on after its first bomb; the second must not find the limit used up."""
    task = live.begin("--memory", "100M")
    for _ in range(3):
        ran = live.verb("task", "exec", "--json", task, "--", "python3", "-c", HOG)
        hits = [hit["limit"] for hit in ran.result["limits_reached"]]
        assert (ran.status, ran.result["cause"], hits) == (137, "limit", ["memory"]), ran


@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user has no control group here")
def test_what_is_built_in_is_held_beside_what_was_asked_for(live):
    """A control group for one limit must not make another's watchdog look away."""
    task = live.begin("--cpus", "2")
    told = json.loads(live.verb("ps", "--json").out)
    rows = told if isinstance(told, list) else told["tasks"]
    limits = next(row for row in rows if row["task"] == task)["limits"]
    assert limits["cpu share"]["grade"] == "exact", limits
    assert limits["memory"]["grade"] == "polled", limits
    assert GPU not in limits, limits


def test_room_given_back_is_room_again(live):
    """A live task that went beyond its disk limit can work again when the files are gone."""
    task = live.begin("--disk", "30M")
    fill = live.verb("task", "exec", "--json", task, "--", "sh", "-c",
                     "head -c 100M /dev/zero >big; sleep 20")
    hits = [hit["limit"] for hit in fill.result["limits_reached"]]
    assert (fill.status, hits) == (137, ["disk"]), fill
    (live.work / "big").unlink()
    os.sync()
    assert live.verb("task", "exec", task, "--", "sh", "-c", "sleep 3; echo on").out == "on\n"
