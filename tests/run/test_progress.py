"""The status line on a caller's terminal: when it is there, and that it never disturbs anything."""
import os
import re
import signal
import subprocess
import time

from boxed import BAWN, LIMIT_S, descendants, eventually, place
from live import live
from screen import Screen

__all__ = ["live", "place"]

SHOWN = re.compile(rb"\r\x1b7\x1b\[0m([a-z]+ [^\x1b]*)\x1b\[K\x1b8")
WIPED = b"\r\x1b7\x1b[0m\x1b[K\x1b8"
WIPED_BELOW = b"\r\x1b7\x1b[0m\x1b[J\x1b8"


class Lined(Screen):
    """A terminal on which a status line may come and go."""

    def __init__(self, place, argv, columns=100, **variables):
        super().__init__(place.work, argv, columns=columns, **variables)

    @property
    def lines(self):
        return [line.decode() for line in SHOWN.findall(self.bytes)]

    @property
    def rest(self):
        """What stays on the terminal, had there been no line."""
        return SHOWN.sub(b"", self.bytes).replace(WIPED, b"").replace(WIPED_BELOW, b"")


def until(name):
    """A silent action (sh), up to go(name); better than a time that a busy host may pass."""
    return f"until test -e {name}; do sleep 0.1; done"


def go(place, name="go"):
    (place.work / name).touch()


def more_lines(screen):
    count = len(screen.lines)
    screen.wait_until(lambda got: len(SHOWN.findall(got)) > count, "a line")


def seen(screen):
    """Plays the bytes on the only row that counts here; the rows as a person would see them."""
    rows, column, saved = [""], 0, 0
    for part in re.findall(rb"\x1b7|\x1b8|\x1b\[[0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", screen.bytes):
        row = rows[-1]
        if part == b"\r":
            column = 0
        elif part == b"\n":
            rows.append("")
        elif part == b"\x1b7":
            saved = column
        elif part == b"\x1b8":
            column = saved
        elif part in (b"\x1b[K", b"\x1b[J"):
            rows[-1] = row[:column]
        elif not part.startswith(b"\x1b"):
            text = part.decode()
            rows[-1] = row[:column].ljust(column) + text + row[column + len(text):]
            column += len(text)
    return rows


def test_a_silent_action_shows_what_it_uses(place):
    screen = Lined(place, place.argv("--memory", "2G", "--timeout", "90s", "--", "sleep", "4.5"))
    screen.wait_until(SHOWN.search, "a line")
    assert re.fullmatch(r"running \ds of 1m30s, cpu (0\.0s|\d+(\.\d)?ms), "
                        r"memory \d+(\.\d)?[KM] of 2G, 1 process", screen.lines[0]), screen.lines
    assert screen.finish() == 0
    assert 2 <= len(screen.lines) <= 6, screen.lines
    assert screen.rest == b"", screen.bytes
    assert seen(screen) == [""], "wiped at the end"
    place.assert_nothing_left()


def test_a_short_action_has_none(place):
    screen = Lined(place, place.argv("--", "sleep", "0.5"))
    assert screen.finish() == 0 and screen.bytes == b""


def test_output_comes_to_a_clean_line(place):
    screen = Lined(place, place.argv(
        "--", "sh", "-c", f"{until('go')}; echo one; echo two >&2; {until('more')}; "
        "printf '\\033[31mthree\\n'"))
    more_lines(screen)
    go(place)
    more_lines(screen)
    go(place, "more")
    assert screen.finish() == 0
    assert len(screen.lines) >= 2, screen.bytes
    assert screen.bytes.count(WIPED) == 2, screen.bytes
    assert seen(screen) == ["one", "two", "three", ""], screen.bytes
    assert screen.rest == b"one\r\ntwo\r\n\x1b[31mthree\r\n\x1b[0m\x1b[0m", screen.bytes


def test_never_in_the_middle_of_a_line(place):
    screen = Lined(place, place.argv("--", "sh", "-c", "printf begun; sleep 3.5; echo ended"))
    assert screen.finish() == 0
    assert screen.bytes == b"begunended\r\n\x1b[0m"


def test_not_while_output_goes_on(place):
    screen = Lined(place, place.argv(
        "--", "sh", "-c", "i=0; while [ $i -lt 12 ]; do echo $i; sleep 0.3; i=$((i+1)); done"))
    assert screen.finish() == 0 and screen.lines == [], screen.bytes


def assert_without(screens):
    """They ran side by side: each takes as long as a line would have taken."""
    for screen in screens:
        assert screen.finish() == 0 and screen.lines == [], screen.bytes


def redirected(redirection, argv):
    is_behind = redirection == "&"
    return ["bash", "-mc" if is_behind else "-c",
            f'"$@" {redirection}\n' + ("wait" if is_behind else ""), "bash", *argv]


WITHOUT = [["--quiet"], ["--json"], ["--tty"], ["--stdin"]]
REDIRECTED = ["| cat", "2>&1 | cat", "2>error", "&"]


def test_options_without_a_line(place):
    assert_without([Lined(place, place.argv(*options, "--", "sleep", "2.7"))
                    for options in WITHOUT])


def test_not_where_another_reads_or_has_the_terminal(place):
    assert_without([Lined(place, redirected(redirection, place.argv("--", "sleep", "2.7")))
                    for redirection in REDIRECTED])
    assert (place.work / "error").read_bytes() == b""


def test_with_output_in_a_file(place):
    screen = Lined(place, ["sh", "-c", '"$@" --json -- sh -c "echo x; ' + until("go") + '" >out',
                           "sh", *place.argv()])
    more_lines(screen)
    go(place)
    assert screen.finish() == 0
    assert screen.lines, screen.bytes
    assert (place.work / "out").read_bytes().startswith(b"x\n{")


def test_a_terminal_that_can_erase_nothing(place):
    screen = Lined(place, place.argv("--", "sleep", "2.7"), TERM="dumb")
    assert screen.finish() == 0 and screen.bytes == b""


def test_the_width_of_the_window(place):
    screen = Lined(place, place.argv("--", "sh", "-c", until("go")), columns=80)
    screen.wait_until(SHOWN.search, "a line")
    assert len(screen.lines[0]) > 24
    screen.resize(24, 24)
    screen.wait_until(lambda got: WIPED_BELOW in got, "the broken line wiped")
    more_lines(screen)
    assert re.fullmatch(r"running \d+s, cpu (0\.0s|\d+(\.\d)?ms)", screen.lines[-1]), screen.lines
    go(place)
    assert screen.finish() == 0


def test_colours_are_never_ours(place):
    screen = Lined(place, place.argv("--", "sh", "-c", until("go")), NO_COLOR="1")
    more_lines(screen)
    go(place)
    assert screen.finish() == 0 and screen.lines
    assert set(re.findall(rb"\x1b\[[0-9;]*m", screen.bytes)) == {b"\x1b[0m"}


def test_a_stopped_terminal_does_not_hold_the_clock(place):
    """^S on the terminal: the limit ends the action all the same."""
    screen = Lined(place, place.argv("--timeout", "4s", "--", "sleep", "60"))
    screen.type("\x13")
    begun = time.monotonic()
    found = False
    assert eventually(lambda: descendants(screen.pid), LIMIT_S)
    while time.monotonic() < begun + LIMIT_S and not found:
        found = descendants(screen.pid) == set()
        time.sleep(0.05)
    took = time.monotonic() - begun
    screen.type("\x11")
    assert screen.finish() == 124
    assert found and took < LIMIT_S, took


def test_suspended_and_continued(place):
    screen = Lined(place, ["bash", "--norc", "-i"], PS1="$ ")
    screen.wait_until(lambda got: b"$ " in got, "a prompt")
    words = " ".join(place.argv("--", "sleep", "30"))
    screen.type(words + "\r")
    screen.wait_until(SHOWN.search, "a line")
    screen.type("\x1a")
    screen.wait_until(lambda got: b"Stopped" in got, "the shell's word")
    assert WIPED in screen.bytes.split(b"Stopped")[0], "wiped before the shell has the terminal"
    count = len(screen.lines)
    screen.type("fg\r")
    screen.wait_until(lambda got: len(SHOWN.findall(got)) > count, "a line again")
    screen.type("\x03")
    screen.wait_until(lambda got: b"$ " in got.rsplit(b"\x1b8", 1)[1], "a prompt")
    screen.type("exit\r")
    screen.finish()
    place.assert_nothing_left()


def test_a_frozen_task_says_so(place):
    screen = Lined(place, place.argv("--", "sh", "-c", until("go")))
    screen.wait_until(SHOWN.search, "a line")
    task = os.listdir(place.state / "tasks")[0]
    subprocess.run([BAWN, "freeze", *place.options, task], check=True, timeout=LIMIT_S)
    screen.wait_until(lambda got: b"frozen " in got, "a frozen line")
    subprocess.run([BAWN, "thaw", *place.options, task], check=True, timeout=LIMIT_S)
    go(place)
    assert screen.finish() == 0


# --- an action of a live task: the supervisor draws, for its client

def client(live, *words, options=(), script="sleep 2.7"):
    task = live.begin(*options)
    return task, [BAWN, "task", "exec", *live.options, task, *words, "--", "sh", "-c", script]


def test_a_silent_action_of_a_live_task(live):
    task, argv = client(live, "--timeout", "90s", options=["--memory", "2G"], script="sleep 4.5")
    screen = Lined(live, argv)
    screen.wait_until(SHOWN.search, "a line")
    assert re.fullmatch(r"running \ds of 1m30s, cpu (0\.0s|\d+(\.\d)?ms), "
                        r"memory \d+(\.\d)?[KM] of 2G, \d process(es)?",
                        screen.lines[0]), screen.lines
    assert screen.finish() == 0
    assert 2 <= len(screen.lines) <= 6, screen.lines
    assert screen.rest == b"" and seen(screen) == [""], screen.bytes
    # and the next one, whose time is its own
    screen = Lined(live, [BAWN, "task", "exec", *live.options, task, "--", "sh", "-c", until("go")])
    more_lines(screen)
    go(live)
    assert screen.finish() == 0
    assert re.match("running [2-4]s,", screen.lines[0]), screen.lines


def test_output_of_a_live_task_comes_to_a_clean_line(live):
    _, argv = client(live, script=f"{until('go')}; echo one; echo two >&2; {until('more')}; exit 3")
    screen = Lined(live, argv)
    more_lines(screen)
    go(live)
    more_lines(screen)
    go(live, "more")
    assert screen.finish() == 3
    assert len(screen.lines) >= 2, screen.bytes
    assert seen(screen) == ["one", "two", ""], screen.bytes
    assert screen.rest == b"one\r\ntwo\r\n\x1b[0m\x1b[0m", screen.bytes


def test_denials_of_a_live_task_come_to_a_clean_line(live):
    _, argv = client(live, script=until("go") + "; cat /etc/shadow")
    screen = Lined(live, argv)
    more_lines(screen)
    go(live)
    assert screen.finish() != 0 and screen.lines
    assert all(not row.startswith("running") for row in seen(screen)), screen.bytes
    assert b"bawn: " in screen.rest


def test_options_without_a_line_in_a_live_task(live):
    assert_without([Lined(live, client(live, *options)[1]) for options in WITHOUT])


def test_not_where_another_reads_or_has_the_terminal_of_a_client(live):
    assert_without([Lined(live, redirected(redirection, client(live)[1]))
                    for redirection in REDIRECTED])


def test_a_client_s_terminal_that_can_erase_nothing(live):
    screens = [Lined(live, client(live)[1], TERM=term) for term in ("dumb", "")]
    assert_without(screens)
    assert all(screen.bytes == b"" for screen in screens)


def test_a_frozen_live_task_says_so(live):
    task, argv = client(live, script=until("go"))
    screen = Lined(live, argv)
    screen.wait_until(SHOWN.search, "a line")
    assert live.verb("freeze", task).status == 0
    screen.wait_until(lambda got: b"frozen " in got, "a frozen line")
    assert live.verb("thaw", task).status == 0
    go(live)
    assert screen.finish() == 0 and seen(screen) == [""]


def test_a_client_that_is_stopped_and_continued(live):
    screen = Lined(live, ["bash", "--norc", "-i"], PS1="$ ")
    screen.wait_until(lambda got: b"$ " in got, "a prompt")
    _, argv = client(live, script="'sleep 30'")
    screen.type(" ".join(argv) + "\r")
    screen.wait_until(SHOWN.search, "a line")
    screen.type("\x1a")
    screen.wait_until(lambda got: b"Stopped" in got, "the shell's word")
    assert WIPED in screen.bytes.split(b"Stopped")[0], "wiped before the shell has the terminal"
    count = len(screen.lines)
    screen.type("sleep 2.5; echo silent\r")
    screen.wait_until(lambda got: b"\rsilent\r" in got, "the shell's own command")
    assert len(screen.lines) == count, "drawn over another's lines"
    screen.type("fg\r")
    screen.wait_until(lambda got: len(SHOWN.findall(got)) > count, "a line again")
    screen.type("\x03")
    screen.wait_until(lambda got: b"$ " in got.rsplit(b"\x1b8", 1)[1], "a prompt")
    screen.type("exit\r")
    screen.finish()


def test_a_client_that_is_stopped_while_nobody_answers(live):
    task, argv = client(live, script="'sleep 30'")
    screen = Lined(live, ["bash", "--norc", "-i"], PS1="$ ")
    screen.wait_until(lambda got: b"$ " in got, "a prompt")
    screen.type(" ".join(argv) + "\r")
    screen.wait_until(SHOWN.search, "a line")
    (pid,) = [found["pid"] for found in live.tasks() if found["task"] == task]
    os.kill(pid, signal.SIGSTOP)
    screen.type("\x1a")
    screen.wait_until(lambda got: b"Stopped" in got, "the shell's word")
    os.kill(pid, signal.SIGCONT)
    screen.type("fg\r")
    count = len(screen.lines)
    screen.wait_until(lambda got: len(SHOWN.findall(got)) > count, "a line again")
    screen.type("\x03")
    screen.wait_until(lambda got: b"$ " in got.rsplit(b"\x1b8", 1)[1], "a prompt")
    screen.type("exit\r")
    screen.finish()


def test_a_client_that_is_killed(live):
    task, argv = client(live, script="trap : HUP TERM; sleep 30")
    screen = Lined(live, argv)
    screen.wait_until(SHOWN.search, "a line")
    os.kill(screen.pid, 9)
    os.waitpid(screen.pid, 0)
    assert live.verb("task", "exec", task, "--", "true").status == 0
    os.close(screen.fd)
    assert live.verb("task", "exec", task, "--", "sleep", "1.5").status == 0
    assert live.verb("task", "end", task, "--grace", "500ms").status == 0
