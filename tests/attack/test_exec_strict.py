"""exec.strict, attacked from inside: a program that no policy lists is executed by every way.

Each attack is a text of Python, which stands for a listed program that an attacker has taken over.
It is seen to succeed in the same box without exec.strict, and must fail with it. What needs no
file at all (code that an interpreter is given, or that is written into memory) is not what
exec.strict holds, and `bawn explain` says so.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "run"))

from boxed import BAWN, place, policy_file, refused  # noqa: E402
from live import live  # noqa: E402

__all__ = ["place", "live"]

PYTHON = os.path.realpath("/usr/bin/python3")
MODULES = next(Path("/usr/lib").glob("python3*/lib-dynload/_ctypes.*")).parent
LOADER = re.search(r"interpreter: (\S+)\]", subprocess.run(
    ["readelf", "-l", PYTHON], capture_output=True, text=True, check=True).stdout).group(1)
LISTED = [PYTHON, str(MODULES), "/usr/bin/true", "/usr/bin/cp"]

PAYLOAD = r"""
#include <unistd.h>
int main(void) { return write(1, "OWNED\n", 6) == 6 ? 0 : 1; }
"""
LIBRARY = r"""
#include <unistd.h>
__attribute__((constructor)) static void begin(void) { (void)!write(1, "OWNED\n", 6); }
unsigned la_version(unsigned version) { return version; }
int owned(void) { return 42; }
"""

PRELUDE = r"""
import ctypes, mmap, os, shutil, subprocess, sys
static, dynamic, library, loader = (os.path.abspath(n) for n in ("static", "dynamic", "evil.so",
                                                                  LOADER))
def run(path, *words, **options):
    return subprocess.run([path, *words], check=False, **options)
def copied(source, folder, name="copy"):
    path = os.path.join(folder, name)
    shutil.copy(source, path)
    os.chmod(path, 0o755)
    return path
def opened(fd):
    'What was written, open for reading alone: one that is open for writing is busy.'
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    os.set_inheritable(again, True)
    return again
def in_memory(source):
    fd = os.memfd_create("x", 0)
    os.write(fd, open(source, "rb").read())
    return fd
def call(code):
    'Executes bytes at an address: mov eax, 42; ret.'
    return ctypes.CFUNCTYPE(ctypes.c_int)(code)()
"""

# What is tried, by name.
ATTACKS = {
    "workspace": "run(static)",
    "relative": "os.chdir('/'); run(os.path.relpath(static))",
    "/tmp": "run(copied(static, '/tmp'))",
    "/var/tmp": "run(copied(static, '/var/tmp'))",
    "home": "run(copied(static, os.environ['HOME']))",
    "cache of the home": "run(copied(static, os.environ['HOME'] + '/.cache'))",
    "runtime directory": "run(copied(static, os.environ['XDG_RUNTIME_DIR']))",
    "symbolic link": "os.symlink(static, '/tmp/link'); run('/tmp/link')",
    "hard link": "os.link(static, 'link'); run('./link')",
    "rename over": "copied('/usr/bin/true', '.', 'tool'); os.replace(static, 'tool'); "
                   "run('./tool')",
    "written over": "p = copied('/usr/bin/true', '/tmp', 'tool'); "
                    "open(p, 'wb').write(open(static, 'rb').read()); run(p)",
    "directory moved": "os.mkdir('a'); copied(static, 'a'); os.rename('a', 'b'); run('b/copy')",
    "git directory": "os.makedirs('.git/x', exist_ok=True); run(copied(static, '.git/x'))",
    "nameless file": "fd = os.open('/tmp', os.O_TMPFILE | os.O_RDWR, 0o755); "
                     "os.write(fd, open(static, 'rb').read()); fd = opened(fd); "
                     "run(f'/proc/self/fd/{fd}', pass_fds=[fd])",
    "deleted file": "fd = os.open(copied(static, '/tmp'), os.O_RDONLY); os.unlink('/tmp/copy'); "
                    "run(f'/proc/self/fd/{fd}', pass_fds=[fd])",
    "open directory": "fd = os.open('.', os.O_PATH); "
                      "run(f'/proc/self/fd/{fd}/static', pass_fds=[fd])",
    "own root": "run('/proc/self/root' + static)",
    "own directory": "run('/proc/self/cwd/static')",
    "memory by path": "fd = in_memory(static); run(f'/proc/self/fd/{fd}', pass_fds=[fd])",
    "memory by descriptor": "os.execve(in_memory(static), ['x'], {})",
    "memory by pid": "fd = in_memory(static); run(f'/proc/{os.getpid()}/fd/{fd}')",
    "memory and loader": "fd = in_memory(dynamic); "
                         "run(loader, f'/proc/self/fd/{fd}', pass_fds=[fd])",
    "open file": "os.execve(os.open(static, os.O_RDONLY), ['x'], {})",
    "loader": "run(loader, dynamic)",
    "loader, no mode": "os.chmod(dynamic, 0o644); run(loader, dynamic)",
    "loader in /tmp": "run(loader, copied(dynamic, '/tmp'))",
    "copied loader": "run(copied(loader, '/tmp'), dynamic)",
    "own interpreter": "run(dynamic)",
    "preload": "run('/usr/bin/true', env={'LD_PRELOAD': library})",
    "preload from /tmp": "run('/usr/bin/true', env={'LD_PRELOAD': copied(library, '/tmp')})",
    "audit": "run('/usr/bin/true', env={'LD_AUDIT': library})",
    "loader's preload": "run(loader, '--preload', library, '/usr/bin/true')",
    "dlopen": "ctypes.CDLL(library)",
    "script": "open('s', 'w').write('#!PYTHON\\nprint(\"OWNED\")\\n'); os.chmod('s', 0o755); "
              "run('./s')",
    "script of the payload": "open('/tmp/s', 'w').write('#!' + static + '\\n'); "
                             "os.chmod('/tmp/s', 0o755); run('/tmp/s')",
    "system's program": "run('/usr/bin/printf', 'OWNED\\n')",
    "system's program by the loader": "run(loader, '/usr/bin/printf', 'OWNED\\n')",
    "system's program, elsewhere": "run('HELPER', '$X', env={'X': 'OWNED'}, input=b'$X')",
    "system's program, elsewhere, by the loader":
        "run(loader, 'HELPER', '$X', env={'X': 'OWNED'}, input=b'$X')",
    "mapped": "m = mmap.mmap(os.open('code', os.O_RDONLY), 4096, mmap.MAP_PRIVATE, "
              "mmap.PROT_READ | mmap.PROT_EXEC); print('OWNED')",
    "mapped, then made executable":
        "c = ctypes.CDLL(None, use_errno=True); c.mmap.restype = ctypes.c_void_p; "
        "a = c.mmap(None, 4096, 1, 2, os.open('code', os.O_RDONLY), ctypes.c_long(0)); "
        "assert c.mprotect(ctypes.c_void_p(a), 4096, 5) == 0 and call(a) == 42; print('OWNED')",
}
ARCHITECTURES = {"mapped, then made executable": "x86_64"}
HELPER = "/usr/lib/git-core/git-sh-i18n--envsubst"


def build(folder):
    """The payloads, as a task would bring them: by file."""
    (folder / "code").write_bytes(b"\xb8\x2a\0\0\0\xc3".ljust(4096, b"\0"))
    for name, text, *options in (("static", PAYLOAD, "-static"), ("dynamic", PAYLOAD),
                                 ("evil.so", LIBRARY, "-shared", "-fPIC")):
        subprocess.run(["cc", "-O1", "-o", folder / name, *options, "-x", "c", "-"], check=True,
                       input=text, text=True, capture_output=True)
        (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def payloads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("payloads")
    build(folder)
    return folder


def policy(place, strict, more="", listed=()):
    programs = ", ".join([*LISTED, *listed])
    return policy_file(place, f"exec: {{strict: {str(strict).lower()}, allow: [{programs}]}}\n"
                       + more, f"{strict}.yaml")


def script(text):
    whole = PRELUDE + text
    return whole.replace("LOADER", repr(LOADER)).replace("PYTHON", PYTHON) \
        .replace("HELPER", HELPER)


def bring(place, payloads):
    for path in payloads.iterdir():
        shutil.copy(path, place.work)


def attack(place, strict, text, *options, more="", listed=()):
    """What the attack put out."""
    ran = place.run("--policy", policy(place, strict, more, listed), *options, "--", PYTHON, "-c",
                    script(text))
    # a fault of the attack's own text says nothing about the wall
    for fault in ("SyntaxError", "NameError", "AttributeError", "ImportError", "TypeError"):
        assert fault not in ran.err or "failed to map segment" in ran.err or \
            "memfd" in ran.err, ran
    assert "bawn: denied: command" not in ran.err, ran
    return ran


def succeeds_only_where_not_strict(place, text, *options, more="", clean=True):
    loose = attack(place, False, text, *options, more=more)
    assert "OWNED" in loose.out, loose
    if clean:
        for name in ("link", "tool", "a", "b", "s", "copy"):
            path = place.work / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    held = attack(place, True, text, *options, more=more)
    assert "OWNED" not in held.out, held
    place.assert_nothing_left()
    return held


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_not_listed_is_not_executed(place, payloads, name):
    if os.uname().machine != ARCHITECTURES.get(name, os.uname().machine):
        pytest.skip(f"code of {ARCHITECTURES[name]}")
    if "HELPER" in ATTACKS[name] and not os.path.exists(HELPER):
        pytest.skip(f"no {HELPER} here")
    bring(place, payloads)
    if name == "git directory":
        subprocess.run(["git", "init", "-q", place.work], check=True)
    if name == "rename over":
        shutil.copy(place.work / "static", place.work / "kept")
        succeeds_only_where_not_strict(
            place, "shutil.copy('kept', 'static'); os.chmod('static', 0o755); " + ATTACKS[name])
        return
    succeeds_only_where_not_strict(place, ATTACKS[name])


def test_shared_memory_is_noexec_in_any_box(place, payloads):
    bring(place, payloads)
    for strict in (False, True):
        assert "OWNED" not in attack(place, strict, "run(copied(static, '/dev/shm'))").out


def test_memory_of_processes_is_not_written(place):
    """dd of=/proc/self/mem, by which a tool that only writes files executes anything."""
    text = "open('/proc/self/mem', 'r+b').close(); print('OWNED')"
    for strict in (False, True):
        ran = attack(place, strict, text)
        assert "Read-only file system" in ran.err and "OWNED" not in ran.out, ran


@pytest.mark.parametrize("workspace", ["staged", "ephemeral"])
def test_layers(place, payloads, workspace):
    """What is in the workspace, and what the task adds in its layer."""
    bring(place, payloads)
    more = f"workspace: {workspace}\n"
    for text in ("run(static)", "run(copied(static, '.', 'new'))", "run(loader, dynamic)"):
        succeeds_only_where_not_strict(place, text, more=more)


def test_paths_of_flags(place, payloads):
    """A writable root, a readable one, and an input."""
    extra = place.base / "extra"
    extra.mkdir()
    bring(place, payloads)
    shutil.copy(payloads / "static", extra)
    for option in ("--read", "--write"):
        succeeds_only_where_not_strict(place, f"run('{extra}/static')", option, extra)
        succeeds_only_where_not_strict(place, f"run('{extra}/static')", option, extra / "static")
    succeeds_only_where_not_strict(place, f"run(copied(static, '{extra}'))", "--write", extra)
    succeeds_only_where_not_strict(place, "run('/run/bawn/input/static')", "--input",
                                   payloads / "static")


def test_a_cache(place, payloads):
    """The overlay of a package cache, its own layer as the host's."""
    bring(place, payloads)
    plan = json.loads(subprocess.run([BAWN, "plan", "--json", *place.options], cwd=place.work,
                                     capture_output=True, text=True, check=True).stdout)
    caches = [op["target"] for op in plan["operations"] if op["kind"] == "overlay"]
    if not caches:
        pytest.skip("the caller's home has no package cache")
    succeeds_only_where_not_strict(place, f"run(copied(static, '{caches[0]}'))")


def test_a_live_task(live, payloads):
    """Every action of it, also those of its zygote, and names that are covered again."""
    bring(live, payloads)
    for strict in (False, True):
        task = live.begin("--policy", policy(live, strict), "--protect", "static")
        for text in ("run(static)", "run(copied(static, '/tmp', str(os.getpid())))",
                     "os.execve(in_memory(static), ['x'], {})", "run(loader, dynamic)"):
            ran = live.verb("task", "exec", task, "--", PYTHON, "-c", script(text))
            assert ("OWNED" in ran.out) == (not strict), ran
        # the host puts another file in the place of one that is protected
        shutil.copy(payloads / "static", live.work / "other")
        os.replace(live.work / "other", live.work / "static")
        (live.work / "static").chmod(0o755)
        ran = live.verb("task", "exec", task, "--", PYTHON, "-c", script("run(static)"))
        assert ("OWNED" in ran.out) == (not strict), ran
        assert live.verb("task", "end", task).status == 0


def test_a_preset(place, payloads):
    """A policy that goes on from one narrows it."""
    bring(place, payloads)
    for preset in ("review", "quarantine"):
        succeeds_only_where_not_strict(place, "run(static)", more=f"preset: {preset}\n",
                                       clean=False)


@pytest.mark.parametrize("layer", ["mounts", "filter"])
def test_verify_sees_what_is_missing(place, layer):
    lab = os.path.join(os.path.dirname(BAWN), "bawn-verify-lab")
    for name in ("hidden", "protected"):
        (place.work / name).write_text("x")
    without, expected = {
        "mounts": ("execution", {"run a copy /tmp", "load a copy /tmp",
                                 f"run a copy {place.work}", f"load a copy {place.work}",
                                 "load as code /etc/passwd"}),
        "filter": ("seccomp", {"file in memory", "run an open file"}),
    }[layer]
    ran = subprocess.run([lab, without, str(place.state), policy(place, True)], text=True,
                         cwd=place.work, capture_output=True, timeout=70, check=False)
    assert ran.returncode == 1 and ran.stderr == "", ran
    assert expected <= {line.split("\t")[1] for line in ran.stdout.splitlines()}, ran.stdout
    ran = subprocess.run([lab, "nothing", str(place.state), policy(place, True)], text=True,
                         cwd=place.work, capture_output=True, timeout=70, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), ran


# --- what a policy may not list, and what may not be asked for beside it


def refusal(place, *arguments, listed=(), more=""):
    return place.run("--policy", policy(place, True, more, listed), *arguments, "--",
                     "/usr/bin/true")


@pytest.mark.parametrize("option", ["--nested-userns", "--allow-ptrace"])
def test_options_that_undo_it(place, option):
    refused(refusal(place, option), place, 125, option, "exec.strict")


def test_policies_that_undo_it(place):
    refused(refusal(place, more="kernel: {nested-userns: true}\n"), place, 125, "exec.strict")
    refused(refusal(place, more="kernel: {ptrace: true}\n"), place, 125, "exec.strict")


def test_a_program_that_the_task_writes(place):
    """By the path that is listed, by a link to it, and in a directory of --write."""
    shutil.copy("/usr/bin/true", place.work / "tool")
    (place.base / "extra").mkdir()
    shutil.copy("/usr/bin/true", place.base / "extra" / "tool")
    (place.base / "link").symlink_to(place.work / "tool")
    for listed, options in (([place.work / "tool"], []), ([place.base / "link"], []),
                            ([place.work / "tool"], ["--read-only"]),
                            ([place.base / "extra" / "tool"], ["--write", place.base / "extra"])):
        ran = refusal(place, *options, listed=list(map(str, listed)))
        refused(ran, place, 125, "exec.strict", str(listed[0]), "writes")


def test_a_script_whose_interpreter_is_not_listed(place):
    tools = place.base / "tools"
    tools.mkdir()
    (tools / "hello").write_text("#!/usr/bin/dash\necho hello\n")
    (tools / "hello").chmod(0o755)
    refused(refusal(place, "--read", tools, listed=[f"{tools}/hello"]), place, 125, "exec.strict",
            "hello", "/usr/bin/dash")
    ran = place.run("--policy", policy(place, True, listed=[f"{tools}/hello", "/usr/bin/dash"]),
                    "--read", tools, "--", f"{tools}/hello")
    assert (ran.status, ran.out) == (0, "hello\n"), ran


def test_nothing_is_listed(place):
    path = policy_file(place, "exec: {strict: true}\n")
    refused(place.run("--policy", path, "--", "true"), place, 125, "exec.allow")


@pytest.mark.parametrize("denied", ["cp], deny: [/usr/bin/cp", "mount], sets: [no-mounts"])
def test_deny_beats_allow(place, denied):
    text = f"exec: {{strict: true, allow: [{PYTHON}, {MODULES}, {denied}]}}\n"
    ran = place.run("--policy", policy_file(place, text), "--", PYTHON, "-c",
                    "import os; print(sorted(os.listdir('/usr/bin')))")
    assert ran.status == 0 and "'cp'" not in ran.out and "'mount'" not in ran.out, ran
    assert os.path.basename(PYTHON) in ran.out


def test_a_listed_directory_holds_nothing_that_is_denied(place):
    text = f"exec: {{strict: true, allow: [{PYTHON}, {MODULES}, /usr/bin], deny: [cp]}}\n"
    ran = place.run("--policy", policy_file(place, text), "--", PYTHON, "-c", "print('ran')")
    assert ran.status == 125 and "/usr/bin" in ran.err and "holds cp" in ran.err, ran
    assert not ran.out


# --- what works


def test_listed_programs_work(place):
    """By name, path and link, with what they load; and nothing else is there."""
    path = policy_file(place, "exec: {strict: true, allow: [ls, cat, awk, git, sh, /bin/cp]}\n")
    (place.work / "file").write_text("a b\n")

    def output(*argv):
        ran = place.run("--policy", path, "--", *argv)
        assert ran.status == 0, ran
        return ran.out

    assert output("cat", "file") == output("/bin/cat", "file") == "a b\n"
    assert output("awk", "{ print $2 }", "file") == "b\n"
    output("cp", "file", "other")
    subprocess.run(["git", "init", "-q", place.work], check=True)
    assert "file" in output("git", "status", "--short")
    shown = set(output("ls", "/usr/bin").split())
    assert {"ls", "cat", "awk", "git", "sh", "cp"} <= shown
    assert shown <= {"ls", "cat", "awk", "git", "sh", "cp"} | {
        os.path.basename(os.path.realpath(f"/usr/bin/{name}")) for name in ("awk", "sh")}


def test_nothing_is_executed_that_nobody_lists(place):
    path = policy_file(place, "exec: {strict: true, allow: [sh]}\n")
    ran = place.run("--policy", path, "--", "sh", "-c", "ls /; printf '%s\\n' done")
    assert ran.out == "done\n" and "not found" in ran.err, ran
    ran = place.run("--policy", path, "--", "ls")
    assert ran.status == 126 and "exec.allow" in ran.err, ran


@pytest.mark.parametrize("where", ["work", "/tmp"])
def test_a_refusal_is_told(place, payloads, where):
    bring(place, payloads)
    folder = str(place.work) if where == "work" else where
    ran = place.run("--json", "--policy", policy(place, True, listed=["/bin/sh"]), "--", "sh", "-c",
                    f"cp dynamic {folder}/tool; {folder}/tool")
    denial, = ran.result["denials"]
    assert (denial["code"], denial["object"]) == ("exec.strict", f"{folder}/tool"), ran
    assert denial["rule"]["id"] == "exec.allow"


def test_explain_names_what_voids_it(place):
    path = policy_file(place, "exec: {strict: true, allow: [cat, sh, /usr/bin/python3, "
                              "no-such-program, install-info]}\n")
    ran = subprocess.run([BAWN, "explain", "--json", *place.options, "--policy", path],
                         cwd=place.work, capture_output=True, text=True, check=True)
    rows = json.loads(ran.stdout)["command"]
    strict = [row for row in rows if row["text"].startswith("exec.strict")]
    assert [row["enforcement"] for row in strict] == ["exact", "absent"] + ["absent"] * (
        len(strict) - 2)
    assert "/usr/bin/cat" in strict[0]["items"]
    assert strict[1]["items"] == ["sh", "/usr/bin/python3"]
    if os.path.exists("/usr/bin/install-info"):
        assert strict[2]["items"] == ["install-info"]
    ran = subprocess.run([BAWN, "explain", *place.options], cwd=place.work, capture_output=True,
                         text=True, check=True)
    assert "exec.strict" not in ran.stdout


def test_the_box_tells(place):
    ran = attack(place, True, "print(open('/run/bawn/policy.txt').read())")
    assert "only those of the list below" in ran.out
    assert "program /usr/bin/true\n" in ran.out.replace("  ", " "), ran
    ran = attack(place, True, "print(open('/run/bawn/policy.json').read())")
    assert json.loads(ran.out)["exec_strict"] is True


def test_verify_agrees(place):
    ran = subprocess.run([BAWN, "verify", "--json", *place.options, "--policy",
                          policy(place, True)], cwd=place.work, capture_output=True, text=True,
                         timeout=70, check=False, stdin=subprocess.DEVNULL)
    rows = json.loads(ran.stdout)["attempts"]
    assert ran.returncode == 0, [row for row in rows if not row["passed"]]
    tried = [row["attempt"] for row in rows]
    for attempt in ("run a copy", "load a copy", "load as code", "file in memory",
                    "run an open file"):
        assert attempt in tried
