"""Completion, by each of the three shells: verbs, options, values, commands and ids of tasks."""
import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from boxed import BAWN, LIMIT_S, eventually, nobody_left
from live import live
from screen import Screen

__all__ = ["live"]

BASH = """source <(bawn completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_bawn
[[ ${#COMPREPLY[@]} = 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = """bawn completion fish | source
complete -c tool -l wonder
for line in $argv
	complete -C $line
	echo END
end
"""
# What is offered goes through compadd, which only a widget may call; with -O, -A and -D it tells
# functions of the shell's own what it would offer.
ZSH = r"""
autoload -Uz compinit && compinit -D -u
source <(bawn completion zsh)
_tool() { _arguments --wonder }
compdef _tool tool
compadd() {
	if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		local -a offered
		builtin compadd -A offered "$@"
		[[ $#offered = 0 ]] || print -rl -- $offered >>$OFFERED
	fi
	builtin compadd "$@"
}
probe() { _main_complete; print END >>$OFFERED }
zle -C probe complete-word probe
bindkey -e
bindkey '^I' probe
setopt no_auto_list no_auto_menu no_beep
PS1='READY> '
"""


def environment(live):
    (live.base / "home").mkdir(exist_ok=True)
    return {**os.environ, "PATH": f"{os.path.dirname(BAWN)}:{os.environ['PATH']}",
            "MARKED_ONE": "1", "HOME": str(live.base / "home"), "ZDOTDIR": str(live.base / "home")}


class Bash:
    """What stands on the line is taken apart as readline does."""

    def __init__(self, live):
        self.live = live

    def offered(self, line):
        words = [part for word in shlex.split(line) for part in re.split("(=)", word) if part]
        words += [""] if line.endswith(" ") else []
        ran = subprocess.run(["bash", "-c", BASH, "bash", *words], cwd=self.live.work, check=True,
                             timeout=LIMIT_S, stdout=subprocess.PIPE, text=True,
                             env=environment(self.live))
        return ran.stdout.splitlines()

    def close(self):
        pass


class Fish:
    def __init__(self, live):
        self.live = live

    def offered(self, line):
        ran = subprocess.run(["fish", "--no-config", "-c", FISH, "--", line], cwd=self.live.work,
                             check=True, timeout=LIMIT_S, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=environment(self.live))
        assert ran.stderr == "", "the script is not right"
        # behind a tabulator: the description
        return [found.partition("\t")[0] for found in ran.stdout.splitlines() if found != "END"]

    def close(self):
        pass


class Zsh:
    """One that lives: it needs a terminal, and takes its time to start."""

    def __init__(self, live):
        self.file = live.base / "offered"
        (live.base / "home").mkdir()
        (live.base / "home" / ".zshrc").write_text(ZSH)
        self.screen = Screen(live.work, ["zsh", "-d", "-i"], OFFERED=str(self.file),
                             **environment(live))
        self.screen.wait_until(lambda all: b"READY> " in all, "prompt")

    def offered(self, line):
        self.file.write_text("")
        # ^U: away with the line before
        self.screen.type(f"\x15{line}\t")
        self.screen.wait_until(lambda _: "END\n" in self.file.read_text(), "completion")
        return self.file.read_text().splitlines()[:-1]

    def close(self):
        os.kill(self.screen.pid, signal.SIGKILL)
        os.waitpid(self.screen.pid, 0)
        os.close(self.screen.fd)


@pytest.fixture(name="shell", params=[Bash, Fish, Zsh], ids=lambda kind: kind.__name__)
def make_shell(request, live):
    name = request.param.__name__.lower()
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    made = request.param(live)
    yield made
    made.close()


def complete(shell, line):
    """The last parts of what is offered: shells differ in how much of a word they repeat."""
    return {found.strip().rstrip("/").rpartition("=")[2].rpartition("/")[2]
            for found in shell.offered(line)}


def table():
    """{verb: options} of `bawn help --table`."""
    verbs = {}
    ran = subprocess.run([BAWN, "help", "--table"], check=True, timeout=LIMIT_S,
                         stdout=subprocess.PIPE, text=True)
    for line in ran.stdout.splitlines():
        verb, option, *_ = line.split("\t")
        # a switch may have its value in its name: complete() leaves that
        verbs.setdefault(verb, set()).update({option.rpartition("=")[2]} - {"-"})
    return verbs


LINES = {
    "bawn ru": {"run"},
    "bawn run --devi": {"--devices"},
    "bawn run --devices /dev/nul": {"null"},
    "bawn run --devices=/dev/nul": {"null"},
    "bawn run --read fil": {"file"},
    "bawn run --json --read fil": {"file"},
    "bawn run --cwd fold": {"folder"},
    "bawn run --cwd fil": set(),
    "bawn run --env MARKED_": {"MARKED_ONE"},
    "bawn run --memory ": set(),
    "bawn task e": {"exec", "end"},
    "bawn task start --devi": {"--devices"},
    "bawn trace pru": {"prune"},
    "bawn trace show --al": {"--all"},
    # a word of the trace that is a verb, too
    "bawn trace verify --k": {"--key"},
    "bawn verify --k": set(),
    "bawn completion ": {"bash", "zsh", "fish"},
    "bawn help trac": {"trace"},
    # what stands behind "--" is another program's line
    "bawn run -- whoam": {"whoami"},
    "bawn run -- cat fil": {"file"},
    "bawn run -- cat --devi": set(),
    "bawn task exec t-none -- whoam": {"whoami"},
}


def test_lines(live, shell):
    (live.work / "file").touch()
    (live.work / "folder").mkdir()
    offered = {line: complete(shell, line) for line in LINES}
    assert offered == LINES


def test_verbs_and_their_options(shell):
    verbs = table()
    assert complete(shell, "bawn ") == {verb for verb in verbs if " " not in verb}
    groups = {"trace", "review"}
    for group in groups:
        assert complete(shell, f"bawn {group} ") == {
            verb.split()[1] for verb in verbs if verb.startswith(f"{group} ")}
    offered = {verb: complete(shell, f"bawn {verb} -") for verb in verbs if verb not in groups}
    assert offered == {verb: options for verb, options in verbs.items() if verb not in groups}


def test_options_of_the_command(live, shell):
    """By its own completion, where the shell has one for it."""
    if isinstance(shell, Bash):
        pytest.skip("it takes the package bash-completion, which the tests do not look for")
    assert complete(shell, "bawn run --json -- tool --won") == {"--wonder"}
    assert complete(shell, "bawn run -- tool --devi") == set()


@pytest.mark.parametrize("form", ["--state-dir ", "--state-dir="])
def test_live_tasks(live, shell, form):
    tasks = {live.begin(), live.begin()}
    before = set(os.listdir(live.state / "tasks"))
    one, state = sorted(tasks)[0], form + shlex.quote(str(live.state))
    places = [f"bawn {verb} {state}" for verb in ("logs", "attach", "freeze", "thaw", "stop",
                                                  "kill", "task exec", "task end")]
    places.append(f"bawn shell {state} --task")
    for place in places:
        assert complete(shell, f"{place} ") == tasks, place
        assert complete(shell, f"{place} {one[:-1]}") == {one}, place
        # no id has a 0; fish is content with letters in that order
        assert complete(shell, f"{place} t-0") == set(), place
    for place in (f"bawn run {state}", f"bawn task {state} start", f"bawn task {state}"):
        assert not tasks & complete(shell, f"{place} t-"), place
    assert set(os.listdir(live.state / "tasks")) == before
    assert live.verb("kill", "--all").status == 0
    assert complete(shell, f"{places[0]} t-") == set()


def test_a_directory_with_what_a_shell_would_expand(live, shell):
    other = live.base / "a $(touch made) *"
    other.mkdir(mode=0o700)
    assert complete(shell, f"bawn logs --state-dir {shlex.quote(str(other))} ") == set()
    assert not (live.work / "made").exists()


def test_nothing_is_started(live, shell):
    complete(shell, "bawn logs ")
    shell.close()
    shell.close = lambda: None
    assert eventually(nobody_left)
