"""bawn policy decide: verdicts of command lines end to end, with the parser in its jail."""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from boxed import BAWN, ROOT

LIMIT_BYTES = 64 * 1024
ESCAPES = (("\\n", "\n"), ("\\r", "\r"), ("\\033", "\033"), ("\\u202e", "\u202e"))


def decide(*arguments, cwd, program=BAWN, stdin=b""):
    ran = subprocess.run([program, "policy", "decide", *arguments], cwd=cwd, input=stdin,
                         capture_output=True, timeout=120, check=False)
    assert ran.returncode in (0, 1), ran
    return ran


def decided(*arguments, cwd, program=BAWN, stdin=b""):
    ran = decide("--json", *arguments, cwd=cwd, program=program, stdin=stdin)
    decision = json.loads(ran.stdout)
    assert decision["version"] == 1
    assert (ran.returncode == 0) == (decision["verdict"] == "allow")
    return decision


def verdict(*arguments, cwd, **more):
    return decided(*arguments, cwd=cwd, **more)["verdict"]


@pytest.fixture
def work(tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    return place


def test_the_parser_was_built(work):
    decision = decided("--shell", "ls", cwd=work)
    assert decision["verdict"] == "allow", \
        f"{decision['reason']}: tools/setup fetches the grammar, then build again"


def approval_rows():
    with open(ROOT / "tests/attack/approval.tsv") as file:
        for row in file:
            if row.strip() and row[0] != "#":
                command, must, _ = row.rstrip("\n").split("\t")
                for escape, character in ESCAPES:
                    command = command.replace(escape, character)
                yield command, must


def test_every_row_of_the_table(work):
    (work / "link-to-shadow").symlink_to("/etc/shadow")
    rows = list(approval_rows())
    assert len(rows) > 80
    wrong = [(command, must, found) for command, must in rows
             if (found := verdict("--shell", command, cwd=work)) != must]
    assert not wrong, "\n".join(map(str, wrong))


def test_recorded_trees_are_what_the_parser_makes(work):
    """The unit test of policy/shell has trees of its own; live ones lead to the same verdict."""
    wrong, count = [], 0
    with open(ROOT / "tests/unit/shell_trees.tsv") as file:
        for row in file:
            must, text, _ = row.split("\t", 2)
            if "/work/p" in text or "/home/u" in text or "link-to-shadow" in text:
                continue
            text = text.encode().decode("unicode_escape").encode("latin-1")
            # what is in the quotes is read here, and is not there
            if b"\0" in text or text == b"sh -c 'ls'":
                continue
            count += 1
            if (found := verdict("--shell-file", "-", cwd=work, stdin=text)) != must:
                wrong.append((text, must, found))
    assert count > 200 and not wrong, wrong


WRAPPED = [("whoami", "allow"), ("timeout 5 ls", "allow"), ("timeout 5 touch x", "ask"),
           ("nice git log", "allow"), ("bash -lc 'ls && git status'", "allow"),
           ("bash -c 'ls; touch x'", "ask"), ("sh -c \"bash -c 'cat .env'\"", "ask"),
           ("env -C /etc cat shadow", "ask"), ("xargs -Iecho echo hi", "ask"),
           ("find . -name shadow -execdir cat shadow ';'", "ask"),
           ("watch -x sort '#' -o x", "ask"),
           ("set -o keyword; git log PAGER=x", "ask"), ("set -euo pipefail; ls", "allow"),
           ("sudo ls", "deny"), ("timeout 5 sudo ls", "deny"), ("sh -c 'sudo ls'", "deny"),
           ("git log --oneline | head -5 && wc -l *.c", "allow")]


SPLIT = [("x='a -delete'; find . -name $x", "ask"), ("sort -k $x f", "ask"),
         ("git log --format=$x", "ask"), ("git log -n$x", "ask"), ("nice -n $x ls", "ask"),
         ("x='. .env'; grep $x f", "ask"), ("x='1 .env'; head -n $x f", "ask"),
         ("grep .* f", "ask"), ("sort -k * f", "ask"), ("find . -name * -print", "ask"),
         ("git log --author=\"$x\" -n \"$n\"", "allow"), ("head -n \"$n\" f", "allow"),
         ("grep \"$x\" f", "allow"), ("grep *.c f", "allow"), ("grep --include=*.c x .", "allow"),
         ("sleep $x", "allow"), ("find . -name \"$x\"", "allow"),
         ("for f in *.c; do grep -n x \"$f\"; done", "allow"),
         ("jq \"$x\" f", "ask"), ("LC_ALL=C sort f", "allow"), ("PAGER=cat git log", "allow"),
         ("PAGER=less git log", "ask"), ("LANGUAGE=../x ls", "ask")]


@pytest.mark.parametrize("command, must", SPLIT)
def test_words_that_become_several_are_not_one_argument(work, command, must):
    assert verdict("--shell", command, cwd=work) == must


NOT_A_SHELLS = [("tar tf a --checkpoint-action=exec=./evil", "ask"),
                ("tar tf a --checkpoint=1 --checkpoint-action exec=id", "ask"),
                ("tar -I a=b -tf x", "ask"), ("sed ':a w x' f", "ask"), ("nm @options", "ask")]


@pytest.mark.parametrize("command, must", NOT_A_SHELLS)
def test_what_looks_like_a_shells_text_may_be_none(work, command, must):
    assert verdict("--shell", command, cwd=work) == must


@pytest.mark.parametrize("command, must", WRAPPED)
def test_wrappers_are_judged_by_what_they_wrap(work, command, must):
    assert verdict("--shell", command, cwd=work) == must


def test_argv_is_not_read_as_a_shell_would(work):
    assert verdict("--", "echo", "$(rm x)", ";", "rm", cwd=work) == "allow"
    assert verdict("--", "sh", "-c", "ls | wc -l", cwd=work) == "allow"
    assert verdict("--", "sh", "-c", "ls > x", cwd=work) == "ask"
    assert verdict("--", "", cwd=work) == "ask"


def test_json_says_segment_request_and_rule(work):
    decision = decided("--shell", "timeout 5 ls | tee out", cwd=work)
    assert decision["verdict"] == "ask"
    assert decision["segments"] == [["timeout", "5", "ls"], ["ls"], ["tee", "out"]]
    request = decision["requests"][decision["request"]]
    assert (request["verb"], request["target"], request["segment"]) == ("fs.write", "out", 2)
    assert request["rule"] == {"id": "command.fs.write", "file": None, "line": 0}
    assert request["exact"] and request["reason"] and decision["rule"] == request["rule"]
    assert {each["verdict"] for each in decision["requests"]} == {"allow", "ask"}
    decision = decided("--shell", "[[ -n x ]] && sh -c '[ -f a ]'", cwd=work)
    assert decision["segments"] == [["test"], ["sh", "-c", "[ -f a ]"], ["test"]]
    allowed = decided("--shell", "ls", cwd=work)
    assert allowed["requests"][0]["rule"]["id"] == "command.exec"


def test_text_says_the_same(work):
    ran = decide("--shell", "ls; rm -f \x1b[2Jx", cwd=work)
    assert ran.stdout.startswith(b"ask: ") and b"\x1b" not in ran.stdout
    ran = decide("--shell", "cat a | tee b", cwd=work)
    first, *rest = ran.stdout.decode().splitlines()
    assert first == 'ask: fs.write b (built-in "command.fs.write": makes or changes a file)'
    assert "  1: cat a" in rest and "  2: tee b" in rest
    assert decide("--", "ls", cwd=work).stdout.splitlines()[0] == b"allow"
    assert b"fs.write x" in decide("--shell", "> x", cwd=work).stdout


def test_nothing_runs(work):
    for command in ("touch x", "$(touch x)", "> x", "bash -c 'touch x'"):
        assert verdict("--shell", command, cwd=work) == "ask"
        assert verdict("--", "sh", "-c", command, cwd=work) == "ask"
    assert list(work.iterdir()) == []


def test_links_lead_where_they_lead(work):
    (work / "to-ssh").symlink_to(Path.home() / ".ssh")
    (work / "out").symlink_to("/etc")
    (work / ".env").symlink_to("plain")
    (work / "plain").write_text("x")
    os.mkfifo(work / "fifo")
    assert verdict("--", "cat", "plain", "fifo", cwd=work) == "allow"
    assert verdict("--", "cat", ".env", cwd=work) == "ask"
    assert verdict("--", "cat", "out/shadow", cwd=work) == "ask"
    assert verdict("--", "cat", "out/../etc/shadow", cwd=work) == "ask"
    assert verdict("--", "git", "-C", "out", "status", cwd=work) == "ask"
    (work / "deep").mkdir()
    (work / "in").symlink_to("/usr/lib")
    assert verdict("--", "cat", "in/../../etc/shadow", cwd=work) == "ask"


@pytest.mark.parametrize("arguments", [
    (), ("--json",), ("--shell", "ls", "--", "ls"), ("--shell", "ls", "--shell-file", "-"),
    ("--nonsense", "--", "ls"), ("--shell",)])
def test_wrong_use(work, arguments):
    ran = subprocess.run([BAWN, "policy", "decide", *arguments], cwd=work, capture_output=True,
                         timeout=20, check=False)
    assert ran.returncode == 2 and ran.stderr.startswith(b"bawn: ") and not ran.stdout


def test_a_file_that_cannot_be_read(work):
    for name in ("absent", "."):
        ran = subprocess.run([BAWN, "policy", "decide", "--shell-file", name], cwd=work,
                             capture_output=True, timeout=20, check=False)
        assert ran.returncode == 125 and name.encode() in ran.stderr and not ran.stdout
    (work / "script").write_text("ls -la\n# a note\nwc -l *.c\n")
    assert verdict("--shell-file", "script", cwd=work) == "allow"


BAD = {
    "nothing": b"", "blank": b" \n\t\n", "NUL": b"ls\0rm x", "invalid UTF-8": b"ls \xff\xfe",
    "unclosed": b"ls 'x", "quotes": b"'" * 10001, "substitutions": b"echo " + b"$(" * 10000,
    "closed substitutions": b"echo " + b"$(" * 3000 + b"ls" + b")" * 3000,
    "nested quotes": b"echo " + b'"$(' * 3000 + b"ls" + b')"' * 3000,
    "subshells": b"(" * 5000 + b"ls" + b")" * 5000, "braces": b"{ " * 5000 + b"ls" + b"; }" * 5000,
    "commands": b"ls;" * 5000, "one too many": b"ls " + b"a" * (LIMIT_BYTES - 2),
    "1 MB": b"ls " + b"a " * 500000, "ifs": b"if " * 9000, "here-documents": b"<<a" * 9000,
    "expansions": b"${a:-" * 9000, "operators": b"&&||;;|&" * 8000, "errors": b")(" * 30000,
    "ten thousand quotes": b"echo " + b'"$(' * 10000 + b"ls" + b')"' * 10000,
    "ten thousand brackets": b"(" * 10000 + b"ls" + b")" * 10000,
    "quotes in quotes": b"sh -c " + b"'\"" * 10000,
    "escaped": b"sh -c \"" + b"\\\"" * 10000 + b"\"",
    "NUL at the end": b"ls\0", "NULs": b"\0" * 60000, "UTF-8 cut short": b"ls \xe2\x82",
    "overlong": b"ls \xc0\xaf", "surrogate": b"ls \xed\xa0\x80",
    "arithmetic": b"echo $((" + b"(" * 9000, "backslashes": b"\\" * LIMIT_BYTES,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_texts_ask(work, name):
    decision = decided("--shell-file", "-", cwd=work, stdin=BAD[name])
    assert decision["verdict"] == "ask" and decision["reason"]


def test_a_hundred_megabytes_are_not_read(work):
    with open(work / "large", "wb") as file:
        file.truncate(100 << 20)
    assert verdict("--shell-file", "large", cwd=work) == "ask"
    assert verdict("--shell-file", "/dev/zero", cwd=work) == "ask"


def fed(work, argv, feed, megabytes):
    """Status, output, errors and seconds of processor time, with so much memory and no more."""
    command = ["/usr/bin/prlimit", f"--as={megabytes << 20}", "--", BAWN, "policy", "decide",
               "--shell-file", argv]
    with subprocess.Popen(command, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        try:
            for part in feed:
                child.stdin.write(part)
            child.stdin.close()
        except BrokenPipeError:
            pass
        out, error = child.stdout.read(), child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, out, error, usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("megabytes", [1, 100])
@pytest.mark.parametrize("byte", [b"a", b"'", b"(", b"\0", b"\xff", b"\n"])
def test_what_is_too_long_costs_nothing(work, megabytes, byte):
    """Real bytes, through a pipe and from a file: one line, and no more memory than for a word."""
    (work / "large").write_bytes(byte * (megabytes << 20))
    for argv, feed in (("-", (byte * (1 << 20) for _ in range(megabytes))), ("large", ())):
        status, out, error, seconds = fed(work, argv, feed, 16)
        assert status == 1 and not error and b"too long to be parsed" in out, (argv, out, error)
        assert seconds < 1, (argv, seconds)


@pytest.mark.parametrize("name", ["ten thousand quotes", "ten thousand brackets", "here-documents",
                                  "operators", "ifs", "arithmetic"])
def test_what_is_nested_costs_little(work, name):
    status, out, error, seconds = fed(work, "-", [BAD[name]], 160)
    assert status == 1 and out and not error, (out, error)
    assert seconds < 4, seconds


def test_a_text_at_the_limit_is_read(work):
    text = b"ls " + b"a" * (LIMIT_BYTES - 3)
    decision = decided("--shell-file", "-", cwd=work, stdin=text)
    assert decision["segments"][0][0] == "ls"
    assert "too long" not in decision["reason"]


def installed(place, parser):
    """A copy of bawn with this program as its bawn-parse."""
    place.mkdir()
    shutil.copy(BAWN, place / "bawn")
    if parser:
        shutil.copy(parser, place / "bawn-parse")
        (place / "bawn-parse").chmod(0o755)
    return str(place / "bawn")


def lying_parser():
    return Path(BAWN).with_name("bawn-lying-parse")


@pytest.mark.parametrize("kind", ["dies", "garbage", "short", "nodes", "many", "code", "ends", "fd",
                                  "order", "0"])
def test_a_parser_that_was_taken_over_is_not_believed(work, tmp_path, kind):
    program = installed(tmp_path / "install", lying_parser())
    assert verdict("--shell", f"{kind} x", cwd=work, program=program) == "ask"
    assert verdict("--", "sh", "-c", f"{kind} x", cwd=work, program=program) == "ask"


@pytest.mark.parametrize("text", ["rm -rf x", "ls; rm x", "ls `rm x`", "lx", "ls\nrm x", "xs > y"])
def test_a_tree_of_another_text_is_not_believed(work, tmp_path, text):
    program = installed(tmp_path / "install", lying_parser())
    # the lie is the truth for this one: it is heard
    assert verdict("--shell", "ls", cwd=work, program=program) == "allow"
    assert verdict("--shell", text, cwd=work, program=program) == "ask"


@pytest.mark.skipif("BAWN_SOAK" not in os.environ, reason="waits for the limit, ten seconds")
def test_a_parser_that_hangs_is_ended(work, tmp_path):
    program = installed(tmp_path / "install", lying_parser())
    begin = time.monotonic()
    decision = decided("--shell", "hang", cwd=work, program=program)
    assert decision["verdict"] == "ask" and time.monotonic() - begin > 5


def test_without_a_parser_it_asks_and_says_so(work, tmp_path):
    program = installed(tmp_path / "install", "/usr/bin/true")
    decision = decided("--shell", "ls", cwd=work, program=program)
    assert decision["verdict"] == "ask" and "parse" in decision["reason"]
    # what needs none is decided all the same
    assert verdict("--", "ls", cwd=work, program=program) == "allow"


def test_in_a_directory_that_is_gone(work):
    """Which files relative names mean is not known then."""
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" policy decide -- cat x'
    ran = subprocess.run(["/bin/sh", "-c", script, BAWN], cwd=work, capture_output=True, timeout=20,
                         check=False)
    assert ran.returncode in (0, 1) and ran.stdout


def test_numbers(work):
    """docs/SPECIFICATION.md, with room for a machine that does other things."""
    lab = Path(BAWN).with_name("bawn-decide-lab")
    lines = "git status\nls -la src\nrg -n foo src | head -20\ncd src && git diff --stat HEAD~1\n"
    ran = subprocess.run([lab, "3"], input=lines * 25, text=True, cwd=work, capture_output=True,
                         timeout=120, check=True)
    found = json.loads(ran.stdout)
    assert found["argv_us"] <= 500 and found["shell_us"] <= 1500 and found["start_us"] <= 15000
