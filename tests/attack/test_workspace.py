"""Groups C, D and K of hostile.tsv: paths, what is planted for later, artifacts and changes.

Each in the three ways a task writes its workspace: in place, in a layer that is kept until an
apply, in one that goes. What the rows say of a start is in test_attack.py, with its table; here is
what a layer answers of that table, and what comes after the task.
"""
import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "run"))

from boxed import BAWN, IS_ROOT, LIMIT_S, listing  # noqa: E402
from live import live  # noqa: E402
from test_git_box import EXPORT, plain  # noqa: E402

from table import SHORT  # noqa: E402
from test_attack import (  # noqa: E402
    LAB, MODES, RACE_S, SOAK, case, chosen, command, execute, fill_in, in_each_mode, is_refusal,
    make_world, outcome, record)

__all__ = ["live", "make_world"]

# --- C: the table's attacks, in a layer ----------------------------------------------------------

# What leads to a git directory is of the layer like anything else: the host's stands as it was, and
# an apply holds it.
OF_THE_LAYER = ("host unlink {ws}/vendor/.git", "host rename {ws}/plain {ws}/vendor/.git",
                "host write {ws}/vendor/.git")
# Layers that the lab can leave out of a plan with an overlay on the workspace.
LEFT_OUT = "HR"


def by_object():
    """Each attack on paths once, whichever layer it is listed for; of two the one the lab shows."""
    found = {}
    for attack in chosen():
        if attack.id.startswith("HC") or attack.id == "protect":
            key = (attack.argv, attack.options)
            if key not in found or attack.layer in LEFT_OUT:
                found[key] = attack
    return list(found.values())


def picture(world):
    """What the host has of all that the attacks are aimed at."""
    def content(path):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            return (status.st_mode, status.st_uid, path.read_bytes(), os.listxattr(path))
        return (status.st_mode, os.readlink(path) if path.is_symlink() else "")
    return {path: content(path) for root in (world.ws, world.out, world.shown)
            for path in sorted(root.rglob("*"))}


@pytest.mark.parametrize("option", ["--stage", "--ephemeral"])
@pytest.mark.parametrize("attack", by_object(), ids=lambda a: a.name)
def test_table_in_a_layer(world, attack, option):
    """Refused as in place, or of the layer alone; the host has what it had."""
    state = ["--state-dir", tempfile.mkdtemp(prefix="layers.", dir=world.top)]
    options = [*state, "--workspace", world.ws, option, *fill_in(world, attack.options)]
    seen = []
    base, whole = attack.plans(IS_ROOT)
    world.refill()
    before = picture(world)
    of_the_layer = attack.argv in OF_THE_LAYER
    for layers in (base, whole) if attack.layer in LEFT_OUT and not of_the_layer else ():
        seen.append(outcome(*execute([LAB, "--layers", ",".join(layers), *options, "--",
                                      *command(world, attack)], world.ws, attack)))
    full = outcome(*execute([BAWN, "run", *options, "--", *command(world, attack)], world.ws,
                            attack))
    kept = picture(world) == before
    if of_the_layer:
        good = full == "SUCCEEDED"
        if option == "--stage":
            _, out, _ = execute([BAWN, "apply", "--json", *state], world.ws)
            rows = {row["path"]: row["outcome"] for row in map(json.loads, out.splitlines())}
            vendor = world.ws / "vendor/.git"
            good = good and rows.get("vendor/.git", "held") == "held" and \
                picture(world)[vendor] == before[vendor]
    else:
        # an overlay moves no directory of the host's, whoever asks
        shown = not seen or seen[0] in ("SUCCEEDED", "EXDEV") or \
            (seen[0] == "ENOENT" and "unmount" in attack.argv) or \
            (attack.options and "move_parent" in attack.argv)
        good = shown and all(map(is_refusal, [*seen[1:], full])) and full not in attack.never
    record(attack.id, f"{option} {attack.argv}", SHORT[attack.layer], *(seen or ["-", "-"]), full,
           "ok" if good and kept else "FAILED")
    assert kept, "the host's tree is another"
    assert good, (seen, full)


# --- the host's side -----------------------------------------------------------------------------


def run(live, mode, script, *options, status=0):
    """A task in that mode, then all of what it left applied; (its result, what the apply said)."""
    ran = live.sh(script, *MODES[mode], "--json", *options)
    assert ran.status == status, ran
    said = live.verb("apply", limit=3 * LIMIT_S).out if mode == "staged" else ""
    return ran, said


CONTENT = "of the host\n"


def outside(live):
    """A directory of the host's that no task is shown."""
    made = live.base / "outside"
    made.mkdir()
    (made / "secret").write_text(CONTENT)
    return made


def untouched(made):
    return os.listdir(made) == ["secret"] and (made / "secret").read_text() == CONTENT


def empty(live):
    """What is too deep for Python to remove."""
    for path in (live.work, live.state):
        subprocess.run(["chmod", "-R", "u+rwx", path], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", path], check=True, timeout=LIMIT_S)


# each verb costs some seconds at 5,000
DEPTH = 5000 if SOAK else 1200
EVIL = r"""
import os, socket
os.mkfifo("fifo"); os.mkfifo("Makefile"); os.symlink("OUT", "trap"); os.symlink("loop", "loop")
os.symlink("OUT/secret", "file"); os.symlink("/proc/self/fd/0", "descriptor")
socket.socket(socket.AF_UNIX).bind("socket")
for name in (b"\033]0;x\007", b"new\nline", b"-rf", b"$(id)", b"\xff\xfe", "\u202e".encode()):
    open(name, "w").write("x")
os.truncate(os.open("sparse", os.O_CREAT | os.O_WRONLY), 1 << 40)
os.mkdir("shut"); open("shut/in", "w").write("x"); os.chmod("shut", 0)
open("mute", "w").write("x"); os.chmod("mute", 0)
here = os.getcwd()
for _ in range(DEPTH):
    os.mkdir("z"); os.chdir("z")
open("end", "w").write("x")
os.chdir(here)
"""


def bounded(live, *words):
    """A verb that ends in time, of some memory, and sends no control sequence."""
    begin = time.monotonic()
    ran = live.verb(*words, limit=3 * LIMIT_S,
                    prefix=["prlimit", f"--as={512 << 20}", "--core=0"])
    assert b"\033]" not in ran.bytes + ran.error_bytes and ran.status in (0, 1), ran
    return ran, time.monotonic() - begin


@in_each_mode
def test_HC04_HD07_what_a_task_leaves(live, mode):
    """Run, diff, apply, undo, discard and artifacts follow nothing, and come to an end."""
    made = outside(live)
    script = EVIL.replace("OUT", str(made)).replace("DEPTH", str(DEPTH))
    ran = live.run(*MODES[mode], "--json", "--artifact", "*", "--artifact-dir",
                   live.base / "copies", "--", "/usr/bin/python3", "-c", script, limit=6 * LIMIT_S)
    assert ran.status == 0, ran
    kinds = {os.path.relpath(change["path"], live.work): change["after"]["type"]
             for change in ran.result["changes"] if change.get("after")}
    assert kinds.items() >= {"fifo": "fifo", "socket": "socket", "trap": "link",
                             "sparse": "file"}.items(), kinds
    reasons = {item["path"]: item["reason"] for item in ran.result["artifacts"]["files"]}
    assert all(reasons[name] for name in ("fifo", "socket", "trap", "file", "descriptor", "loop"))
    assert not any(path.is_symlink() for path in (live.base / "copies").iterdir())
    took = []
    if mode == "staged":
        shown, seconds = bounded(live, "diff")
        took.append(seconds)
        for word in ("created fifo", "created socket"):
            assert word in shown.out, shown.out[:2000]
        for words in (("diff", "--stat"), ("apply",), ("apply", "--undo"), ("apply", "trap"),
                      ("discard", "--yes")):
            took.append(bounded(live, *words)[1])
    case("HC04", f"{mode}: links out of it, and the host's verbs", untouched(made), "outside kept")
    case("HD07", f"{mode}: FIFO, socket, modes 0, names, depth {DEPTH}, 1 TiB", not took or
         max(took) < LIMIT_S, f"the verbs took {sum(took):.1f} s")
    empty(live)


def exchanging(first, second, stop):
    libc = ctypes.CDLL(None)
    while not stop.is_set():
        libc.renameat2(-100, bytes(first), -100, bytes(second), 2)


def refill(live, real):
    shutil.rmtree(real, ignore_errors=True)
    (real / "sub").mkdir(parents=True)
    for name in ("secret", "gone", "sub/f"):
        (real / name).write_text("inside\n")


VERBS = [["apply", "--dry-run"], ["apply", "--overwrite"], ["apply", "--undo"],
         ["apply", "--overwrite"], ["discard", "--yes"]]


def test_HC10_race_of_the_verbs(live):
    """A directory of the workspace and a link out of it change places under each verb."""
    made = outside(live)
    (made / "sub").mkdir()
    (made / "sub/f").write_text(CONTENT)
    real, link = live.work / "race", live.work / "race.link"
    rounds, end, done = 0, time.monotonic() + RACE_S, []
    while time.monotonic() < end or rounds < 3:
        for path in (real, link):
            if path.is_symlink():
                path.unlink()
        refill(live, real)
        shutil.rmtree(link, ignore_errors=True)
        link.symlink_to(made)
        ran = live.sh("echo new > race/secret; rm race/gone; echo new > race/made; "
                      "rm -r race/sub; echo new > race/sub", "--stage")
        assert ran.status == 0, ran
        stop = threading.Event()
        thread = threading.Thread(target=exchanging, args=(real, link, stop))
        thread.start()
        try:
            shown = live.verb("diff")
            done += [live.verb(*words).status for words in VERBS]
        finally:
            stop.set()
            thread.join()
        assert CONTENT not in shown.out + shown.err, shown
        assert (made / "secret").read_text() == (made / "sub/f").read_text() == CONTENT
        assert sorted(os.listdir(made)) == ["secret", "sub"]
        live.verb("discard", "--yes")
        rounds += 1
    case("HC10", f"diff, apply, undo, discard: {rounds} rounds in a race",
         0 in done, f"statuses {sorted(set(done))}")


@in_each_mode
def test_HC10_race_of_artifacts(live, mode):
    """The task exchanges a directory with a link out of it while its files are collected."""
    made = outside(live)
    (live.work / "d").mkdir()
    (live.work / "d/secret").write_text("inside\n")
    (live.work / "l").symlink_to(made)
    stop = threading.Event()
    thread = threading.Thread(target=exchanging, args=(live.work / "d", live.work / "l", stop))
    thread.start()
    found = []
    try:
        end = time.monotonic() + RACE_S / 3
        while time.monotonic() < end:
            into = live.base / f"copies{len(found)}"
            live.sh("true", *MODES[mode], "--artifact", "*/*", "--artifact-dir", into)
            found.append([path.read_text() for path in into.rglob("*") if path.is_file()])
    finally:
        stop.set()
        thread.join()
    case("HC10", f"{mode}: {len(found)} collections in a race", untouched(made) and
         not any(CONTENT in each for each in found), "0 hits")


def test_HC16_replaced_stage(live):
    """Directories of a stage that were replaced by links are not followed by any verb."""
    made = outside(live)
    (live.work / "f").write_text("old\n")
    plain(live)
    ran = live.sh(f"{EXPORT} echo new > f; echo x > g; git commit -qam staged", "--stage", "--json")
    stage = live.state / "stages" / ran.result["stage"]
    top = live.state / "stages"
    paths = [top, stage, *sorted(
        path for path in stage.rglob("*") if path.is_dir() and not path.is_symlink() and
        "work/work" not in str(path) and "objects/" not in str(path))]
    for path in paths:
        aside = live.base / "aside"
        path.rename(aside)
        path.symlink_to(made)
        try:
            for words in (["diff"], ["apply", "--dry-run"], ["apply"], ["apply", "--undo"],
                          ["discard", "--yes"]):
                ran = live.verb(*words)
                kept = untouched(made)
                assert kept and (live.work / "f").read_text() in ("old\n", "two\n", "new\n"), ran
        finally:
            if path.is_symlink():
                path.unlink()
            if path.parent.is_dir():
                aside.rename(path)
        case("HC16", f"{path.relative_to(live.state)} of a stage replaced by a link"
             .replace(stage.name, "TASK"), kept, ran.err or ran.out)
        if not stage.exists():
            break


# --- D: what is planted for later ----------------------------------------------------------------

KEYS = ["core.hooksPath q", "core.fsmonitor x", "core.sshCommand x", "filter.x.clean x",
        "diff.external x", "alias.st !x", "include.path ../evil", "url.x.insteadOf y",
        "credential.helper !x", "core.pager x", "gpg.program x", "includeIf.gitdir:/.path e"]
FILES = [".git/hooks/pre-commit", ".gitmodules", ".mcp.json", ".ripgreprc", ".vscode/tasks.json",
         ".idea/workspace.xml", ".gitconfig", ".bashrc", ".zshrc", ".profile"]


@in_each_mode
def test_HD01_git_keys(live, mode):
    plain(live)
    was = (live.work / ".git/config").read_text()
    script = "; ".join("git config '{}' '{}'".format(*key.split(" ", 1)) for key in KEYS)
    ran, said = run(live, mode, script)
    review = live.verb("review").out
    told = ran.err + said + review
    case("HD01", f"{mode}: {len(KEYS)} keys of git's configuration",
         (live.work / ".git/config").read_text() == was and
         (mode == "ephemeral" or all(key.split()[0].lower() in told.lower() for key in KEYS)),
         review)
    assert mode == "ephemeral" or review.count("config: ") == len(KEYS), review
    subprocess.run(["sh", "-c", script], cwd=live.work, check=True)
    assert (live.work / ".git/config").read_text() != was, "without a box they stand there"


@in_each_mode
def test_HD01_files(live, mode):
    """Of shells' files and .gitmodules nothing obeys one in a workspace: they are work."""
    plain(live)
    script = "".join(f"mkdir -p $(dirname {name}); echo x > {name}; " for name in FILES)
    _, said = run(live, mode, script)
    there = {name for name in FILES if (live.work / name).exists()}
    case("HD01", f"{mode}: files that tools of the host obey", there.isdisjoint(
        {".git/hooks/pre-commit", ".mcp.json", ".vscode/tasks.json", ".idea/workspace.xml"}),
         said or sorted(there))


SETTINGS = [".vscode/tasks.json", ".vscode/settings.json", ".idea/x.xml", ".cursor/mcp.json",
            ".gemini/settings.json", ".codex/config.toml", ".mcp.json", ".claude/settings.json",
            ".devcontainer/devcontainer.json"]


@in_each_mode
@pytest.mark.parametrize("is_there", [False, True])
def test_HD03_settings(live, mode, is_there):
    """Of editors and agents: what is missing does not come, what is there does not change."""
    for name in SETTINGS if is_there else []:
        (live.work / name).parent.mkdir(exist_ok=True)
        (live.work / name).write_text("{}\n")
    before = listing(live.work)
    script = "".join(f"mkdir -p $(dirname {name}); echo evil > {name}; rm -f {name}; "
                     f"echo evil > {name}; " for name in SETTINGS)
    ran, said = run(live, mode, f"({script}) 2> /dev/null; true")
    told = ran.err + said
    case("HD03", f"{mode}: settings that are {'there' if is_there else 'missing'}",
         listing(live.work) == before and (mode != "staged" or "held" in told), told)
    for name in SETTINGS if is_there else []:
        assert (live.work / name).read_text() == "{}\n"


@in_each_mode
def test_HD04_no_policy_from_the_workspace(live, mode):
    """What a task leaves there changes nothing of the next one's rules, nor of bawn's own way."""
    made = outside(live)
    _, said = run(live, mode, "printf 'version: 1\\nfiles: {read: [\"%s\"]}\\n' "
                  f"{made} | tee .bawn.yaml .bawn/policy.yaml bawn.yaml; mkdir -p .config/bawn; "
                  "echo 'HOME=/tmp BAWN_STATE_DIR=/tmp/x CODEX_HOME=.' > .env")
    first = live.sh("true", "--json").result["policy"]
    for name in (".bawn.yaml", "bawn.yaml", ".env"):
        (live.work / name).write_text(f"version: 1\nfiles: {{read: ['{made}']}}\nHOME=/tmp\n")
    ran = live.sh(f"cat {made}/secret", *MODES[mode], "--json")
    assert CONTENT not in ran.out, ran
    second = live.sh("true", "--json")
    case("HD04", f"{mode}: .bawn.yaml and .env", first == second.result["policy"] or
         # .env is one more hidden name
         live.sh("true", "--json", "--show-secrets").result["policy"] ==
         live.sh("rm -f .bawn.yaml bawn.yaml", "--json", "--show-secrets").result["policy"], said)


LATER = {"package.json": "npm and its kin", "Makefile": "make", "conftest.py": "pytest",
         "setup.py": "pip", "build.rs": "cargo", ".pre-commit-config.yaml": "pre-commit",
         ".github/workflows/x.yml": "GitHub"}


def test_HD05_executed_later(live):
    """It is the work, and is marked where it is looked at before it comes."""
    for name in ("package.json", "Makefile"):
        (live.work / name).write_text("{}\n")
    script = "".join(f"mkdir -p $(dirname {name}); echo x >> {name}; " for name in LATER)
    assert live.sh(script, "--stage").status == 0
    rows = {row["path"]: row for row in map(json.loads,
                                            live.verb("diff", "--json").out.splitlines())}
    marked = {name: rows[name]["executed_by"] for name in LATER}
    case("HD05", "files that build tools execute", all(marked.values()) and
         all("executed-later" in rows[name]["marks"] for name in LATER), marked)
    assert live.verb("apply").status == 0
    assert all((live.work / name).exists() for name in LATER)


@in_each_mode
def test_HD06_set_id_bits_and_attributes(live, mode):
    """Not to be made inside; what a layer has of them all the same does not come, and is told."""
    for name in ("a", "b", "c"):
        (live.work / name).write_text("x\n")
    script = ("import os\n"
              "for mode in (0o4755, 0o2755, 0o6755):\n"
              "    try:\n        os.chmod('a', mode)\n        print('made', oct(mode))\n"
              "    except OSError:\n        pass\n"
              "for name, value in (('security.capability', bytes.fromhex('01000002' + '00' * 16)),"
              " ('user.note', b'x')):\n"
              "    try:\n        os.setxattr('b', name, value)\n        print('set', name)\n"
              "    except OSError:\n        pass\n")
    (live.work / "c").chmod(0o4755)
    ran = live.run(*MODES[mode], "--json", "--", "/usr/bin/python3", "-c", script)
    printed = ran.out.split("{", 1)[0]
    assert ran.status == 0 and "made" not in printed and "security" not in printed, ran
    said = live.verb("apply").out if mode == "staged" else ""
    bits = {name: stat.S_IMODE(os.stat(live.work / name).st_mode) for name in "abc"}
    case("HD06", f"{mode}: set-id bits, capabilities, attributes", not bits["a"] & 0o7000 and
         "security.capability" not in os.listxattr(live.work / "b") and
         (mode != "staged" or "attributes" in said), said or printed)


@in_each_mode
def test_HD09_caches(live, mode):
    """The caller's own are not written, in whatever way the workspace is."""
    home = live.base / "home"
    for name in (".npm", ".cache/pip", ".cargo/registry", ".m2", ".cache/ccache", ".cache/uv"):
        (home / name).mkdir(parents=True)
        (home / name / "kept").write_text("kept\n")
    accounts = live.base / "passwd"
    accounts.write_text("root:x:0:0:root:/srv:/bin/sh\n")
    before = listing(home)
    ran = live.run(*MODES[mode], "--json", "--", "sh", "-c",
                   "for d in .npm .cache/pip .cargo/registry .m2 .cache/ccache .cache/uv; do "
                   "mkdir -p ~/$d; echo poison > ~/$d/kept; echo poison > ~/$d/new; done",
                   prefix=["unshare", "-m" if IS_ROOT else "-Urm", "sh", "-c",
                           f'mount --bind {accounts} /etc/passwd && mount --bind {home} /srv && '
                           'exec "$@"', "sh"])
    assert ran.status == 0, ran
    kept = {(home / name / "kept").read_text() for name in (".npm", ".cache/pip", ".m2")}
    case("HD09", f"{mode}: caches of package managers", listing(home) == before and
         kept == {"kept\n"}, ran.err or "as they were")


@in_each_mode
def test_HD10_no_ghosts(live, mode):
    """A listing after is that of before, and git inside finds nothing that is not the host's."""
    plain(live)
    before = listing(live.work)
    ran, _ = run(live, mode, "git status --porcelain --ignored; git add .; "
                 "git diff --cached --exit-code; find . -not -path './.git/*' | sort",
                 "--hide", "absent", "--hide", "sub/absent")
    inside = {line.removeprefix("./") for line in ran.out.splitlines()[:-1]} - {"."}
    ghosts = [path for path in listing(live.work) if path not in before]
    # what leads to a hidden name is there in a layer, where nothing can be opened
    led = {"sub", "sub/absent"} if mode != "direct" else set()
    case("HD10", f"{mode}: stubs in the workspace", "?? " not in ran.out and not [
        path for path in ghosts if not path.startswith(".git/")] and not inside - {*before} - led,
         ghosts or "none")


# --- K: artifacts, diffs, replays ----------------------------------------------------------------

@in_each_mode
def test_HK05_artifacts(live, mode):
    """Of regular files beneath the workspace, whatever is asked for."""
    made = outside(live)
    for pattern in ("../outside/secret", str(made / "secret"), "/etc/passwd", "a/../../x"):
        ran = live.sh("true", *MODES[mode], "--artifact", pattern)
        assert ran.status == 125, ran
    ran = live.sh(f"ln -s {made} d; ln -s {made}/secret l; mkfifo f; ln -s /proc/self/fd/1 p; "
                  "echo x > 'new\nline'; echo y > real", *MODES[mode], "--json", "--artifact",
                  "**", "--artifact-dir", live.base / "copies")
    got = {item["path"]: item["reason"] for item in ran.result["artifacts"]["files"]}
    copies = sorted(path.name for path in (live.base / "copies").rglob("*"))
    case("HK05", f"{mode}: links, FIFOs, descriptors, odd names", copies == ["new\nline", "real"]
         and all(got[name] for name in ("l", "f", "p")), got)
    assert untouched(made)


# path -> (what makes it, what a task makes of it, its kind)
KINDS = {
    "binary": ("printf 'a\\0b'", "printf 'a\\0c' > binary", "modified"),
    "huge": ("true", "truncate -s 2G huge", "modified"),
    "no-newline": ("printf 'a\\nb'", "printf 'a\\nb\\n' > no-newline", "modified"),
    "crlf": ("printf 'a\\r\\n'", "printf 'a\\n' > crlf", "modified"),
    "moved": ("seq 100000", "mv moved moved-to", None),
    "to-directory": ("echo x", "rm to-directory; mkdir to-directory; echo x > to-directory/f",
                     "replaced"),
    "to-link": ("echo x", "rm to-link; ln -s crlf to-link", "replaced"),
    "mode": ("echo x", "chmod 755 mode", "mode"),
    "Case": ("echo case", "mv Case case", None),
    "same-size": ("printf abc", "printf abd | dd of=same-size conv=notrunc status=none; "
                  "touch -d @1 same-size", "modified"),
    "gone": ("echo gone", "rm gone", "removed"),
}


def test_HK06_each_change_once(live):
    for name, (make, _, _) in KINDS.items():
        subprocess.run(["sh", "-c", f"{make} > {name}"], cwd=live.work, check=True)
    (live.work / "way").symlink_to("crlf")
    ran = live.sh("set -e; ln -sfn mode way; " + "; ".join(act for _, act, _ in KINDS.values()) +
                  "; find . -type f ! -name huge -exec sha256sum {} + | sort; readlink way to-link",
                  "--stage", limit=3 * LIMIT_S)
    assert ran.status == 0, ran
    rows = [json.loads(line) for line in
            live.verb("diff", "--json", limit=3 * LIMIT_S).out.splitlines()]
    kinds = {row["path"]: row["kind"] for row in rows}
    assert len(kinds) == len(rows), "each once"
    wanted = {name: kind for name, (_, _, kind) in KINDS.items() if kind}
    wanted |= {"moved-to": "renamed", "case": "renamed", "way": "modified",
               "to-directory/f": "created"}
    case("HK06", "each kind of change once", kinds == wanted, {
        name: (kinds.get(name), wanted.get(name)) for name in {*kinds, *wanted}
        if kinds.get(name) != wanted.get(name)} or f"{len(kinds)} kinds")
    assert live.verb("apply", limit=3 * LIMIT_S).status == 0
    after = subprocess.run(["sh", "-c", "find . -type f ! -name huge -exec sha256sum {} + | sort; "
                            "readlink way to-link"], cwd=live.work, check=True, text=True,
                           capture_output=True).stdout
    case("HK06", "what is applied is the task's tree", after == ran.out and
         os.stat(live.work / "huge").st_size == 2 << 30 and
         os.access(live.work / "mode", os.X_OK), "equal")


def test_HK07_replay_runs_nothing(live):
    """A record is decided again under another policy; commands are not executed for it."""
    assert live.sh("echo x > f", "--stage").status == 0
    assert live.verb("discard", "--yes").status == 0
    rules = live.base / "policy.yaml"
    rules.write_text("version: 1\nexec: {deny: [{program: bash, id: no-shell}]}\n")
    rules.chmod(0o600)
    before = listing(live.work)
    ran = subprocess.run([BAWN, "trace", "replay", *live.options, "--since", "1h", "--policy",
                          rules], check=False,
                         cwd=live.work, timeout=LIMIT_S, capture_output=True, text=True)
    case("HK07", "replay under another policy", ran.returncode == 1 and "no-shell" in ran.stdout and
         listing(live.work) == before, ran.stdout + ran.stderr)
