"""Classification against what Bash really does: lines from a seed, watched by strace.

What a line executes or opens for writing must be among the requests, unless the verdict is ask or
deny; and where nothing of it is unclear, even then. BAWN_SEED picks other lines, BAWN_LINES how
many.
"""
import json
import os
import re
import resource
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import shell_lines

from boxed import BAWN, IS_ROOT, remove_tree

SEED = os.environ.get("BAWN_SEED", "bawn")
LINES = int(os.environ.get("BAWN_LINES", "2000" if os.environ.get("BAWN_SOAK") else "100"))
NOBODY = 65534
CALLS = "execve,execveat,open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,symlink," \
    "symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,truncate,chmod,fchmodat,connect"
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?: resumed>|\()(.*)\) = (-?\d+)")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
# These tell that the words are not all there is.
UNCLEAR = {"exec.unclear", "exec.code", "exec.unknown", "env.set"}
CHANGES = {"fs.write", "fs.remove", "fs.ruin", "fs.persist"}
# What a process opens that is no change of its own: terminals, Bash's file of a here-document, the
# draft of sed's that becomes the file named.
HARMLESS = re.compile(r"/dev/(null|tty|stdout|stderr|fd/[12])|/tmp/sh-thd[.-]\w+|(\./)?sed\w{6}")


class Seen:
    """What a line did: names of programs, paths that were written, connections."""

    def __init__(self, log):
        self.executed, self.written, self.connected = [], [], 0
        unfinished = {}
        for row in log.splitlines():
            pid = row.split(" ", 1)[0]
            if row.endswith("<unfinished ...>"):
                unfinished[pid] = row[:-len("<unfinished ...>")].split("(", 1)[-1]
                continue
            if "resumed>" in row and pid in unfinished:
                row = row.replace("resumed>", "resumed>" + unfinished.pop(pid), 1)
            if (match := CALL.match(row)) and int(match[3]) >= 0:
                self.note(match[1], match[2])

    def note(self, call, arguments):
        texts = [text.encode().decode("unicode_escape") for text in TEXT.findall(arguments)]
        if call.startswith("exec"):
            self.executed.append(os.path.basename(texts[0]))
        elif call == "connect":
            self.connected += "AF_INET" in arguments
        elif "open" not in call or WRITING.search(arguments):
            self.written += [path for path in texts[-1:] if not HARMLESS.fullmatch(path)]


def become_nobody():
    """Whatever the line is made into, it can change nothing but its directory."""
    for kind, limit in ((resource.RLIMIT_CPU, 5), (resource.RLIMIT_FSIZE, 1 << 24),
                        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, 1 << 31)):
        resource.setrlimit(kind, (limit, limit))
    if IS_ROOT:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def prepared(place):
    work = place / "work"
    (work / "d").mkdir(parents=True)
    for name in ("a", "b", "d/e"):
        (work / name).write_text(f"x {name}\ny\nz\n")
    if IS_ROOT:
        for path in (place, work, *work.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return work


def watched(line, work, log):
    """Executes the line in Bash; None where it did not end."""
    child = subprocess.Popen(
        ["/usr/bin/strace", "-f", "-qq", "-s", "4096", "-o", str(log), "-e", "trace=" + CALLS,
         "-e", "signal=none", "/bin/bash", "-c", line],
        cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "HOME": str(work), "FUNCNEST": "50", "LC_ALL": "C.UTF-8"},
        preexec_fn=become_nobody, start_new_session=True)
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(child.pid, 9)
        except ProcessLookupError:
            pass
        child.wait()
    seen = Seen(log.read_text(errors="surrogateescape"))
    assert seen.executed and seen.executed[0] == "bash", (line, seen.executed, child.returncode)
    seen.executed = seen.executed[1:]
    return seen


def decided(line, work):
    ran = subprocess.run([BAWN, "policy", "decide", "--json", "--shell", line], cwd=work,
                         capture_output=True, timeout=60, check=False)
    assert ran.returncode in (0, 1), (line, ran)
    return json.loads(ran.stdout)


def covers(target, path, work):
    """The path is the target, is below it, or has its name with an ending."""
    whole, named = os.path.normpath(work / path), os.path.normpath(work / target)
    return whole == named or whole.startswith(named + "/") or \
        re.match(re.escape(os.path.basename(target)) + r"(\.\w+)?$", os.path.basename(path))


def missing(decision, seen, work):
    """What was done and is in no request."""
    requests = decision["requests"]
    programs = {os.path.basename(each["target"]) for each in requests
                if each["verb"].startswith("exec")}
    changed = [each["target"] for each in requests if each["verb"] in CHANGES]
    found = [f"executes {name}" for name in seen.executed if name not in programs]
    found += [f"writes {path}" for path in seen.written
              if not any(covers(target, path, work) for target in changed)]
    if seen.connected and not any(each["verb"] == "net.connect" for each in requests):
        found.append("connects")
    if decision["verdict"] == "allow":
        found += [f"writes {path}, allowed" for path in seen.written]
    return found


def is_clear(decision):
    return all(each["exact"] and each["verb"] not in UNCLEAR for each in decision["requests"])


def tried(index, line, place):
    work = prepared(place / str(index))
    decision = decided(line, work)
    seen = watched(line, work, place / str(index) / "log")
    if seen is None:
        return "hung", []
    wrong = []
    if decision["verdict"] == "allow" or is_clear(decision):
        wrong = missing(decision, seen, work)
    return ("wrote" if seen.written else "read") + " " + decision["verdict"], \
        [f"{line!r} ({decision['verdict']}): {each}" for each in wrong]


@pytest.fixture
def open_place():
    """Root's lines run as nobody, who must get there."""
    # not pytest's, which each other pytest of the user's shuts again
    path = Path(tempfile.mkdtemp(prefix="bawn-lines.", dir="/var/tmp"))
    path.chmod(0o711)
    yield path
    remove_tree(path)


def test_nothing_is_done_that_was_not_seen(open_place):
    lines = shell_lines.lines(SEED, LINES)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda each: tried(*each, open_place), enumerate(lines)))
    count = {}
    for kind, _ in results:
        count[kind] = count.get(kind, 0) + 1
    wrong = [each for _, found in results for each in found]
    assert not wrong, "\n".join(wrong)
    # the lines are of all kinds, and it is no art to ask about everything
    assert count["wrote ask"] > LINES / 10 and count["read allow"] > LINES / 10, count
    assert "wrote allow" not in count and count.get("hung", 0) < LINES / 100 + 1, count
