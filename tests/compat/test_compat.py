"""The offline rows of compat.tsv: what people run, in a box, with the default options.

A test's name begins with its row's id; a row may have several tests. What waits for other parts
of bawn, or for a tool that this machine lacks, is pending with its reason.
"""
import csv
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "run"))

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, place, select_ready  # noqa: E402
from live import live  # noqa: E402

__all__ = ["live", "place"]

ROWS = {row["id"]: row for row in csv.DictReader(
    (Path(__file__).parent / "compat.tsv").read_text().splitlines(), delimiter="\t",
    quoting=csv.QUOTE_NONE)}

PENDING = {
    "CA09": "signing: waits for brokered sockets",
    "CB12": "the inspection authority: comes with inspection of TLS",
}

# Shown elsewhere, by the suites of bawn run and of live tasks.
ELSEWHERE = {
    "CA08": "test_git_over_ssh",
    "CB11": "test_client, test_no_proxy",
    "CE01": "test_exit_code, test_death_by_signal, test_command_not_found",
    "CE02": "test_input_is_null, test_input_by_pipe_and_file, test_input_closed",
    "CE03": "test_hundred_megabytes_both_ways, test_binary_bytes_and_the_last_line",
    "CE05": "test_signal_reaches_the_traps, test_second_interrupt_ends",
    "CE06": "test_logs_follow_to_the_end, test_background_process_ends_with_the_task, "
            "test_client_that_goes_away",
    "CE07": "test_dispositions_are_default, test_broken_pipe_inside",
}

PYTHON = "/usr/bin/python3"


@pytest.fixture(autouse=True)
def row(request):
    """Names the row, and the part of it where there are several, in the table."""
    name = request.node.name.removeprefix("test_")
    found, _, part = name.partition("_")
    if name.startswith(("pending", "elsewhere")):
        found, part = request.node.callspec.params["name"], ""
    assert found in ROWS, f"{found} is no row of compat.tsv"
    request.node.user_properties.append(("row", f"{found} {part}".strip()))
    return found


@pytest.fixture
def remark(request):
    return lambda text: request.node.user_properties.append(("remark", text))


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed on this machine")


def works(ran, text=None):
    assert ran.status == 0, ran
    if text is not None:
        assert text in ran.out, ran
    return ran


def write(place, **files):
    for name, text in files.items():
        path = place.work / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("name", sorted(PENDING))
def test_pending(name):
    pytest.skip(PENDING[name])


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_elsewhere(name, remark):
    """Only that the tests which show the row are there; they run with tests/run."""
    remark(ELSEWHERE[name])
    folder = Path(__file__).parents[1] / "run"
    source = "".join(path.read_text() for path in folder.glob("test_*.py"))
    for test in re.findall(r"test_\w+", ELSEWHERE[name]):
        assert f"def {test}" in source, test


# --- 1. git --------------------------------------------------------------------------------------

@pytest.fixture
def repository(place):
    need("git")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

    def git(*words):
        subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words],
                       cwd=place.work, check=True, capture_output=True, env=environment)
    git("init", "-q", "-b", "main")
    write(place, a="one\n", sub__b="two\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return place


ME = ["--env", "GIT_AUTHOR_NAME=A", "--env", "GIT_AUTHOR_EMAIL=a@example.org",
      "--env", "GIT_COMMITTER_NAME=A", "--env", "GIT_COMMITTER_EMAIL=a@example.org"]


# how the workspace is written: in place, in a layer that is applied, in one that goes
MODES = {"direct": [], "staged": ["--stage"], "ephemeral": ["--ephemeral"]}
in_each_mode = pytest.mark.parametrize("mode", MODES)


def applied(place, mode):
    """All of what was staged, brought over; what the apply said."""
    ran = subprocess.run([BAWN, "apply" if mode == "staged" else "review", *place.options],
                         check=False, cwd=place.work, capture_output=True, text=True,
                         timeout=LIMIT_S)
    assert ran.returncode in (0, 1), ran
    return ran.stdout + ran.stderr


@in_each_mode
@pytest.mark.parametrize("is_linked", [False, True])
def test_CA01_add_and_commit(repository, is_linked, mode, remark):
    """The main repository of a linked worktree lies outside of the workspace."""
    remark(f"in a {'linked worktree' if is_linked else 'plain checkout'}, {mode}")
    main = repository.work / ".git"
    if is_linked:
        repository.work.rename(repository.base / "main")
        main = repository.base / "main/.git"
        subprocess.run(["git", "-C", main.parent, "worktree", "add", "-q", repository.work, "-b",
                        "topic"], check=True, capture_output=True)
    ran = works(repository.sh(
        "echo new >new; git add new; git commit -qm new; git commit -q --amend -m newer; "
        "hooks=$(git rev-parse --git-path hooks); mkdir -p $hooks; "
        "printf '#!/bin/sh\\n' >$hooks/post-checkout; chmod +x $hooks/post-checkout; "
        "git config core.fsmonitor 'touch evil'; git log -1 --format=%s", *ME,
        *MODES[mode]), "newer\n")
    said = ran.err + applied(repository, mode)
    if mode != "ephemeral":
        assert "core.fsmonitor" in said and "hooks/post-checkout" in said, said
    shown = subprocess.run(["git", "-C", repository.work, "log", "-1", "--format=%s"],
                           check=True, capture_output=True, text=True)
    assert shown.stdout == ("first\n" if mode == "ephemeral" else "newer\n")
    status = subprocess.run(["git", "-C", repository.work, "status", "--porcelain"], check=True,
                            capture_output=True, text=True)
    assert status.stdout == "" and not (repository.work / "evil").exists()
    assert not (main / "hooks/post-checkout").exists()
    assert "fsmonitor" not in (main / "config").read_text()
    assert not list(main.rglob("*.lock"))


@in_each_mode
def test_CA04_status_is_clean(repository, mode):
    ran = works(repository.run("--quiet", *MODES[mode], "--", "git", "status", "--porcelain"))
    assert ran.out == "" and ran.err == "", ran
    works(repository.sh("git add . && git diff --cached --exit-code", *MODES[mode]))
    works(repository.sh("echo one > a && git add . && git diff --cached --exit-code", *MODES[mode]))


@in_each_mode
def test_CA06_no_dubious_ownership(repository, mode):
    ran = works(repository.sh("git log --oneline && stat -c %u . && id -u", *MODES[mode]))
    assert "dubious" not in ran.err
    owner, caller = ran.out.split()[-2:]
    assert owner == caller, "the workspace's owner inside is the caller"


@in_each_mode
def test_CA10_git_basics(repository, mode, remark):
    script = """set -e
    echo three >a; git add a; git commit -q -m second
    echo four >a; git stash -q; git stash pop -q; git checkout -q a
    git checkout -q -b topic; echo five >c; git add c; git commit -q -m third
    git checkout -q main; git merge -q --no-ff -m merge topic; git branch -d topic
    git clone -q . /tmp/clone; git -C /tmp/clone log --oneline | wc -l
    git worktree add -q wt main~1; git -C wt status --porcelain; git worktree remove wt
    git gc -q; git fsck --no-progress; git tag v1; git show --stat v1 | tail -n 1"""
    ran = works(repository.sh(script, *ME, *MODES[mode]), "4\n")
    # the one line that may stand there tells of .git/config, which git itself rewrote
    other = [line for line in ran.err.splitlines()
             if not line.startswith(("bawn: changed by ", "bawn: staged", "bawn: ephemeral"))]
    assert other == [], ran
    said = applied(repository, mode)
    assert "held" not in said and "conflict" not in said, said
    remark(f"status, add, commit, stash, branch, merge, clone, worktree inside, gc, fsck; {mode}")
    log = subprocess.run(["git", "-c", f"safe.directory={repository.work}", "log",
                          "--format=%an%s"], cwd=repository.work, capture_output=True,
                         text=True, check=True).stdout
    assert log.splitlines()[0] == ("Tfirst" if mode == "ephemeral" else "Amerge")
    assert not (repository.work / ".git" / "index.lock").exists()


@in_each_mode
def test_CA03_git_is_a_file(place, mode):
    need("git")
    works(place.sh("git init -q --separate-git-dir meta . && test -f .git && git add . && "
                   "git commit -q --allow-empty -m x && git status --porcelain | wc -l", *ME,
                   *MODES[mode]))
    (place.work / "r").mkdir()
    works(place.sh("cd r && git init -q real && ln -s real/.git .git && git status", *MODES[mode]))


@in_each_mode
@pytest.mark.parametrize("way", ["file", "link", "hooks"])
def test_CA03_git_leads_elsewhere(repository, way, mode, remark):
    """A commit comes to where .git leads, and nothing else does; settings behind a link stay."""
    remark(f".git is a {way}, {mode}" if way != "hooks" else f".git/hooks is a link, {mode}")
    work, elsewhere = repository.work, repository.work / "elsewhere"
    if way != "hooks":
        (work / ".git").rename(elsewhere)
        (work / ".git").symlink_to("elsewhere") if way == "link" else \
            (work / ".git").write_text("gitdir: elsewhere\n")
    else:
        elsewhere = work / ".git"
        shutil.rmtree(elsewhere / "hooks")
        (work / "hooks").mkdir()
        (work / "hooks/pre-commit").write_text("#!/bin/sh\nexit 0\n")
        (work / "hooks/pre-commit").chmod(0o755)
        (elsewhere / "hooks").symlink_to("../hooks")
    (work / "real").mkdir()
    (work / "real/settings.json").write_text("kept\n")
    (work / ".claude").symlink_to("real")
    works(repository.sh(
        "echo x > a; git commit -qam inside; (echo evil > .claude/settings.json; "
        "echo evil > real/settings.json; echo evil > hooks/pre-commit; "
        "git config core.fsmonitor evil; rm -f .git; mkdir -p .git/hooks; "
        "echo evil > .git/hooks/pre-commit) 2> /dev/null; true", *ME, *MODES[mode]))
    applied(repository, mode)
    log = subprocess.run(["git", f"--git-dir={elsewhere}", "log", "-1", "--format=%s"], check=True,
                         capture_output=True, text=True).stdout
    assert log == ("first\n" if mode == "ephemeral" else "inside\n")
    assert "fsmonitor" not in (elsewhere / "config").read_text()
    assert (work / "real/settings.json").read_text() == "kept\n"
    if way == "hooks":
        assert "evil" not in (work / "hooks/pre-commit").read_text()
    else:
        assert not (elsewhere / "hooks/pre-commit").exists() and not (work / ".git/hooks").is_dir()\
            or way == "link"


# --- 2. package managers and builds --------------------------------------------------------------

def test_CB01_npm(place, remark):
    need("npm", "node")
    write(place, package_dot_json="""{"name": "app", "version": "1.0.0", "private": true,
        "scripts": {"test": "node -p 'require(`dep`)'", "postinstall": "echo $HOME >script.log"},
        "dependencies": {"dep": "file:dep"}}""",
          dep__package_dot_json="""{"name": "dep", "version": "1.0.0", "main": "m.js",
        "bin": {"dep-tool": "tool.js"}}""",
          dep__m_dot_js="module.exports = 'from dep'\n",
          dep__tool_dot_js="#!/usr/bin/env node\nconsole.log('a tool')\n")
    ran = works(place.sh("npm install --offline --no-audit --no-fund && npm test --silent && "
                         "npx --offline dep-tool && npm ci --offline --no-audit --no-fund && "
                         "npm config get cache && ls -d ~/.npm/_logs", limit=60))
    assert "from dep" in ran.out and "a tool" in ran.out, ran
    assert (place.work / "script.log").read_text().startswith("/")
    remark("install, scripts, npx, ci offline; its own cache")


def test_CB03_venv_and_editable(place, remark):
    if subprocess.run([PYTHON, "-c", "import ensurepip"], check=False,
                      capture_output=True).returncode:
        pytest.skip("python3-venv is not installed on this machine")
    write(place, setup_dot_py="from setuptools import setup\n"
                              "setup(name='thing', version='1', py_modules=['thing'],\n"
                              "      entry_points={'console_scripts': ['thing=thing:main']})\n",
          thing_dot_py="def main():\n    print('a thing')\n")
    ran = works(place.sh(f"{PYTHON} -m venv env && env/bin/pip install -q --no-index "
                         "--no-build-isolation -e . && env/bin/thing && env/bin/pip list",
                         limit=60), "a thing")
    assert "thing" in ran.out.split("a thing", 1)[1]
    # absolute shebangs: the same paths hold outside and in the next run
    works(place.run("--", "env/bin/thing"), "a thing")
    assert subprocess.run([place.work / "env/bin/thing"], capture_output=True,
                          check=True).stdout == b"a thing\n"
    remark("venv, pip -e, scripts with absolute paths, outside too")


@pytest.mark.parametrize("tool", ["uv", "poetry"])
def test_CB03_other_tools(place, tool):
    need(tool)
    works(place.run("--", tool, "--version"))
    if tool == "uv":
        works(place.sh("uv venv --offline env && env/bin/python -c 'print(1)'", limit=60))


def test_CB04_cargo(place):
    need("cargo")
    write(place, Cargo_dot_toml="[package]\nname='x'\nversion='0.1.0'\nedition='2021'\n",
          build_dot_rs="fn main() { println!(\"cargo:rustc-env=BUILT=yes\"); }\n",
          src__main_dot_rs="fn main() { println!(\"built {}\", env!(\"BUILT\")); }\n")
    works(place.sh("cargo build --offline -q && cargo run --offline -q", limit=90), "built yes")


def test_CB04_go(place):
    need("go")
    write(place, go_dot_mod="module x\n\ngo 1.19\n",
          main_dot_go="package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"built\") }\n")
    works(place.sh("go build -o x . && ./x && go vet ./...", limit=120), "built")


def test_CB04_make_and_c(place, remark):
    need("gcc", "make")
    write(place, Makefile="x: x.c\n\tgcc -O1 -g -fsanitize=undefined -o x x.c -lm -lpthread\n",
          x_dot_c="#include <math.h>\n#include <stdio.h>\n"
                  "int main(int n, char **v) { (void)v; printf(\"%.0f\\n\", sqrt(n * 49)); }\n")
    works(place.sh("make -j2 && ./x"), "7\n")
    remark("make, gcc, sanitizers")


JAVA = """
import java.net.*;
public class Loop {
    public static void main(String[] words) throws Exception {
        ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        Socket client = new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort());
        server.accept().getOutputStream().write(65);
        System.out.println((char) client.getInputStream().read());
        System.out.println(new ServerSocket(0).getInetAddress());
        System.out.println(NetworkInterface.getNetworkInterfaces().nextElement().getName());
        System.out.println(InetAddress.getLocalHost().isLoopbackAddress());
    }
}
"""


def test_CB05_java_loopback(place, remark):
    need("java")
    write(place, Loop_dot_java=JAVA)
    ran = works(place.sh("java Loop.java", limit=60))
    assert ran.out.split("\n")[0] == "A" and "lo\ntrue" in ran.out, ran
    remark("what Gradle's daemon needs: loopback, wildcard address, interfaces, local name")


def test_CB05_gradle(place):
    need("gradle")
    write(place, settings_dot_gradle="rootProject.name = 'x'\n",
          build_dot_gradle="task hello { doLast { println 'a task' } }\n")
    works(place.sh("gradle --offline hello", limit=120), "a task")


def test_CB06_maven(place, remark):
    need("mvn", "java")
    write(place, pom_dot_xml="""<project xmlns="http://maven.apache.org/POM/4.0.0">
        <modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>
        <version>1</version><packaging>pom</packaging></project>""")
    works(place.sh("mvn -q -o validate && ls -d ~/.m2 && ! cat ~/.m2/settings.xml", limit=60))
    remark("mvn -o validate; ~/.m2 of its own layer, settings.xml absent")


def test_CB09_temporary_directory(place):
    ran = works(place.sh("echo $TMPDIR; f=$(mktemp); d=$(mktemp -d); echo '#!/bin/sh' >$f; "
                         "echo 'echo ran' >>$f; chmod +x $f; $f; stat -c %a /tmp; "
                         "[ $(df --output=avail -k /tmp | tail -n 1) -gt 100000 ] && echo room; "
                         "mktemp -p /var/tmp; stat -c %a /var/tmp"))
    lines = ran.out.split()
    assert lines[:4] == ["/tmp", "ran", "1777", "room"] and lines[-1] == "1777", ran
    assert not list(Path("/tmp").glob("tmp.ran*"))


# --- 3. language runtimes ------------------------------------------------------------------------

def test_CC01_multiprocessing(place):
    write(place, pool_dot_py="""
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Lock, Pool, Queue, shared_memory, get_context
import os
def square(n):
    return n * n
if __name__ == "__main__":
    with Pool(3) as pool:
        assert pool.map(square, range(9)) == [n * n for n in range(9)]
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        assert list(pool.map(square, [3])) == [9]
    block = shared_memory.SharedMemory(create=True, size=65536)
    block.buf[0] = 7
    block.close(); block.unlink()
    with Lock():
        print("pools work")
""")
    works(place.run("--", PYTHON, "pool.py"), "pools work")


def test_CC02_interfaces(place):
    ran = works(place.run("--", PYTHON, "-c", "import socket; print(socket.if_nameindex())"))
    assert "'lo'" in ran.out
    if shutil.which("node"):
        works(place.run("--", "node", "-p", "Object.keys(os.networkInterfaces())"), "lo")
    if shutil.which("ip"):
        works(place.sh("ip -o addr show lo"), "127.0.0.1/8")


NODE_SOCKETS = """
const net = require('net'), { fork } = require('child_process');
if (process.argv[2] === 'child') { process.send('from the child'); process.exit(0); }
let open = 2;
for (const path of ['/tmp/s.sock', './s.sock']) {
    const server = net.createServer(c => c.end('hello'));
    server.listen(path, () => net.connect(path).on('data', d => {
        console.log(path, String(d)); server.close();
        if (--open === 0) fork(__filename, ['child']).on('message', m => console.log(m));
    }));
}
"""


def test_CC03_unix_sockets(place):
    script = """
import socket, os
a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
for path in ('/tmp/t.sock', 't.sock', os.environ['XDG_RUNTIME_DIR'] + '/t.sock'):
    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()
    c = socket.socket(socket.AF_UNIX); c.connect(path); s.accept()
    os.unlink(path)
s = socket.socket(socket.AF_UNIX); s.bind('\\0name'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('\\0name')
print('sockets work')
"""
    works(place.run("--", PYTHON, "-c", script), "sockets work")
    if shutil.which("node"):
        write(place, n_dot_js=NODE_SOCKETS)
        ran = works(place.run("--", "node", "n.js"))
        assert "/tmp/s.sock hello" in ran.out and "./s.sock hello" in ran.out, ran
        assert "from the child" in ran.out, ran


INOTIFY = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
assert libc.inotify_add_watch(fd, b'.', 0x102) > 0
print('ready', flush=True)
seen = b''
while b'host' not in seen or b'own' not in seen:
    if not select.select([fd], [], [], 5)[0]:
        sys.exit(1)
    seen += os.read(fd, 4096)
    if b'host' in seen and b'own' not in seen:
        open('own', 'w').close()
print('events')
"""


def test_CC05_file_events(place, remark):
    child = place.start("--", PYTHON, "-c", INOTIFY)
    assert select_ready(child) == b"ready\n"
    (place.work / "host").write_text("x")
    out, err = child.communicate(timeout=15)
    assert (child.returncode, out) == (0, b"events\n"), err
    remark("of its own writes and of the host's")


def test_CC08_locale_and_time(place):
    environment = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "TZ")}
    ran = works(place.run("--", PYTHON, "-c", "import locale, time; "
                          "print(locale.setlocale(locale.LC_ALL, ''), time.tzname)",
                          env=environment))
    assert ran.err == ""
    works(place.run("--", "date", "-d", "2024-07-01 12:00 UTC", "+%H:%M",
                    env={**environment, "TZ": "Europe/Berlin"}), "14:00")
    works(place.run("--", PYTHON, "-c", "import zoneinfo; print(zoneinfo.ZoneInfo('Asia/Tokyo'))"),
          "Tokyo")
    works(place.sh("printf '\\344' | iconv -f latin1 -t utf-8", env={**environment,
                                                                   "LC_ALL": "C.UTF-8"}), "ä")
    host = subprocess.run(["date", "+%Z"], capture_output=True, text=True, check=True,
                          env=environment).stdout
    assert works(place.run("--", "date", "+%Z", env=environment)).out == host


# --- 4. servers and local network ----------------------------------------------------------------

SERVERS = """
import socket, threading, http.server, urllib.request
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'),
                        (socket.AF_INET, '127.0.0.2')):
    server = socket.create_server((address, 0), family=family)
    port = server.getsockname()[1]
    for name in (address, 'localhost') if address != '127.0.0.2' else (address,):
        client = socket.create_connection((name, port), 5)
        peer, _ = server.accept(); peer.sendall(b'x'); assert client.recv(1) == b'x'
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))
v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.sendto(b'd', u.getsockname())
assert u.recv(9) == b'd'
web = http.server.ThreadingHTTPServer(('', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=web.serve_forever, daemon=True).start()
body = urllib.request.urlopen('http://localhost:%d/' % web.server_port, timeout=5).read()
assert b'marker' in body
print('servers work')
"""


def test_CD01_loopback(place):
    write(place, marker="x", s_dot_py=SERVERS)
    works(place.run("--", PYTHON, "s.py"), "servers work")
    works(place.sh("getent hosts localhost && getent ahosts $(hostname)"), "127.0.0.1")


def test_CD01_two_boxes_do_not_meet(place):
    script = "import socket; s = socket.create_server(('127.0.0.1', 45678)); print('bound')"
    for _ in range(2):
        works(place.run("--", PYTHON, "-c", script), "bound")
    child = place.start("--", PYTHON, "-uc", script + "\nimport time; time.sleep(9)")
    assert select_ready(child) == b"bound\n"
    works(place.run("--", PYTHON, "-c", script), "bound")
    child.terminate()
    child.communicate()


def test_CD02_sqlite(place):
    script = """
import sqlite3, threading
c = sqlite3.connect('x.db'); assert c.execute('pragma journal_mode=wal').fetchone() == ('wal',)
c.execute('create table t (n)'); c.commit()
def add():
    d = sqlite3.connect('x.db', timeout=10)
    for n in range(50):
        d.execute('insert into t values (?)', (n,)); d.commit()
ts = [threading.Thread(target=add) for _ in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
print(c.execute('select count(*) from t').fetchone()[0], 'rows')
"""
    works(place.run("--", PYTHON, "-c", script), "150 rows")
    if shutil.which("sqlite3"):
        works(place.sh("sqlite3 x.db 'pragma integrity_check'"), "ok")


def postgresql():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("postgresql is not installed on this machine")
    return found[-1].parent


def test_CD02_postgresql(place, remark):
    path = postgresql()
    script = f"""set -e
    PATH={path}:$PATH
    initdb -D data -A trust -N >log
    pg_ctl -D data -o '-k /tmp -p 54321' -l server.log -w start >log
    psql -h 127.0.0.1 -p 54321 -d postgres -Atc 'create table t as select 7 as n'
    psql -h /tmp -p 54321 -d postgres -Atc 'select n * 6 from t'
    pg_ctl -D data -w stop >log"""
    works(place.sh(script, limit=60), "42")
    remark("initdb, start, TCP and socket, stop")


def test_CD02_redis(place):
    # the server is this program by another name, and its own package would start one on the host
    need("redis-check-rdb", "redis-cli")
    works(place.sh("ln -s $(command -v redis-check-rdb) redis-server; "
                   "./redis-server --port 6399 --daemonize yes --dir $PWD >log; "
                   "for i in $(seq 99); do redis-cli -p 6399 ping >pong && break; sleep 0.05; done;"
                   "redis-cli -p 6399 set a 5; redis-cli -p 6399 get a; "
                   "redis-cli -p 6399 shutdown save"), "5")


def test_CD05_containers(place, remark):
    ran = place.run("--", PYTHON, "-c", "import socket\ns = socket.socket(socket.AF_UNIX)\n"
                    "s.connect('/var/run/docker.sock')")
    assert ran.status == 1 and "No such file" in ran.err, ran
    assert not (ran.out or "denied: net" in ran.err)
    ran = place.run("--", "unshare", "--user", "--mount", "true")
    assert ran.status != 0 and "sys.namespace" in ran.err and "--nested-userns" in ran.err, ran
    remark("no socket of an engine inside; making namespaces is refused by name")


def test_CD07_names_fail_at_once(place, remark):
    script = """
import socket, time
start = time.monotonic()
for name in ('example.com', 'does-not-exist.invalid', 'x'):
    try:
        socket.getaddrinfo(name, 80)
        raise SystemExit('resolved')
    except socket.gaierror:
        pass
print(int((time.monotonic() - start) * 1000 / 3))
"""
    ran = works(place.run("--", PYTHON, "-c", script))
    # a resolver that waits for an answer takes 5 s
    assert int(ran.out) < 1000, ran
    remark(f"{int(ran.out)} ms for a refusal")
    ran = place.run("--", "getent", "hosts", "example.com")
    assert ran.status == 2, ran
    if shutil.which("curl"):
        start = time.monotonic()
        ran = place.run("--", "curl", "-sS", "http://example.com/")
        assert ran.status == 6 and time.monotonic() - start < 5, ran
        assert "net.resolve" in ran.err, ran


# --- 6. identity, files, environment -------------------------------------------------------------

IDENTITY = """
import getpass, grp, os, pwd
me = pwd.getpwuid(os.getuid())
assert os.getuid() == os.geteuid() and os.getuid() != 65534
assert me.pw_name == os.environ['USER'] == os.environ['LOGNAME'] == getpass.getuser()
assert me.pw_dir == os.environ['HOME'] == os.path.expanduser('~') and os.path.isdir(me.pw_dir)
assert me.pw_shell == os.environ['SHELL'] and os.access(me.pw_shell, os.X_OK)
assert grp.getgrgid(os.getgid()).gr_name
open(me.pw_dir + '/x', 'w').close()
print('agree')
"""


def test_CF01_names_agree(place):
    works(place.run("--", PYTHON, "-c", IDENTITY), "agree")
    works(place.sh("whoami && id -gn && echo ~ && ls -ld ."))
    if shutil.which("ssh-keygen"):
        works(place.sh("ssh-keygen -q -t ed25519 -N '' -f key && test -s key.pub"))


def test_CF01_without_an_entry(place, remark):
    if not IS_ROOT:
        pytest.skip("root's run shows a uid that the password database does not know")
    uid = 54321
    for path in (place.base, place.work, place.state):
        os.chown(path, uid, uid)
    ran = place.run("--", PYTHON, "-c", IDENTITY,
                    prefix=["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"])
    works(ran, "agree")
    remark("with --state-dir")


def test_CF02_owner_mode_and_time(place):
    old = os.umask(0o027)
    try:
        works(place.sh("echo x >file; mkdir dir; touch -d '2020-01-02 03:04:05 UTC' then; "
                       "cp -p then also; install -m 755 file tool; umask"), "0027")
    finally:
        os.umask(old)
    for name, mode in (("file", 0o640), ("dir", 0o750), ("then", 0o640), ("tool", 0o755)):
        status = (place.work / name).stat()
        assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid()), name
        assert status.st_mode & 0o777 == mode, name
        if name == "then":
            assert status.st_mtime == 1577934245
    assert (place.work / "also").stat().st_mtime == 1577934245
    assert abs((place.work / "file").stat().st_mtime - time.time()) < 60


def test_CF04_homes_of_programs(place):
    ran = works(place.sh("""for d in "$HOME" "${XDG_CONFIG_HOME:-$HOME/.config}" \
        "${XDG_CACHE_HOME:-$HOME/.cache}" "${XDG_DATA_HOME:-$HOME/.local/share}" \
        "$XDG_RUNTIME_DIR"; do mkdir -p "$d/app" && echo x >"$d/app/f" || exit 1; done
        stat -c %a "$XDG_RUNTIME_DIR"; stat -c %u "$XDG_RUNTIME_DIR"; id -u"""))
    mode, owner, uid = ran.out.split()
    assert mode == "700" and owner == uid, ran


def test_CF05_devices_and_proc(place):
    ran = works(place.sh("""set -e
        for d in null zero full random urandom tty; do test -c /dev/$d; done
        echo x >/dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c
        ! echo x 2>/dev/null >/dev/full
        cat /dev/stdin /dev/fd/0 /proc/self/fd/0; exec 3<>/dev/stdin
        echo in | cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr; test -d /dev/fd/
        test -w /dev/shm; echo x >/dev/shm/f; test -e /dev/ptmx
        grep -q MemTotal /proc/meminfo; grep -q processor /proc/cpuinfo; cat /proc/self/comm
        cat <(echo substituted); test -r /proc/self/maps; nproc"""))
    assert "in\nout\n" in ran.out and "substituted" in ran.out and ran.err == "err\n", ran
    assert int(ran.out.split()[-1]) == len(os.sched_getaffinity(0)), ran
    works(place.run("--", PYTHON, "-c", "import pty, os; m, s = pty.openpty(); os.write(s, b'x'); "
                    "print(os.read(m, 1), os.ttyname(s))"), "/dev/pts/")
    works(place.sh("script -qec 'tty' /dev/null"), "/dev/pts/")


def test_CF08_environment(place):
    caller = {"PATH": "/usr/local/bin:/usr/bin:/bin:/somewhere", "LANG": "C.UTF-8", "TERM": "vt100",
              "GOFLAGS": "-v", "API_KEY": "no", "http_proxy": "http://x", "HOME": "/fake",
              "USER": "mallory"}
    ran = works(place.run("--json", "--", "env", env=caller))
    inside = dict(line.split("=", 1) for line in ran.out.splitlines()[:-1])
    for name in ("PATH", "LANG", "TERM", "GOFLAGS"):
        assert inside[name] == caller[name], (name, inside)
    assert "API_KEY" not in inside and inside["HOME"] != "/fake" and inside["USER"] != "mallory"
    assert {"API_KEY", "http_proxy"} <= set(ran.result["withheld_environment"])


def test_CF09_denial_is_explained(place):
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    other = next((home / name for name in (".profile", ".bashrc", ".bash_logout")
                  if (home / name).is_file()), None)
    if not other:
        pytest.skip("this account's home has none of the usual files")
    ran = place.run("--json", "--", "cat", other)
    assert ran.status == 1, ran
    line = next(line for line in ran.err.splitlines() if line.startswith("bawn: denied: "))
    assert "fs.read" in line and str(other) in line and "--read" in line, ran
    denial, = ran.result["denials"]
    assert denial["object"] == str(other) and denial["evidence"] == "inferred"
    # and the remedy works
    remedy = denial["remedy"].split()
    works(place.run(*remedy, "--", "cat", other), other.read_text())


# --- 7. debuggers and tools ----------------------------------------------------------------------

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int twice(int n) { return n * 2; }
int main(void) { int *p = malloc(8); *p = twice(21); printf("%d\\n", *p); free(p); return 0; }
"""


@pytest.fixture
def program(place):
    need("gcc")
    write(place, p_dot_c=PROGRAM)
    subprocess.run(["gcc", "-g", "-O0", "-o", "p", "p.c"], cwd=place.work, check=True)
    return place


def test_CG01_gdb(program, remark):
    need("gdb")
    script = ["gdb", "-nx", "-batch", "-ex", "break twice", "-ex", "run", "-ex", "bt",
              "-ex", "print n", "-ex", "continue", "./p"]
    ran = works(program.run("--allow-ptrace", "--", *script))
    assert "$1 = 21" in ran.out and "in main" in ran.out and "exited normally" in ran.out, ran
    ran = program.run("--", *script)
    assert "$1 = 21" not in ran.out and "--allow-ptrace" in ran.err, ran
    remark("with --allow-ptrace; the default refuses and names it")


def test_CG01_strace(program, remark):
    need("strace")
    ran = works(program.run("--allow-ptrace", "--", "strace", "-f", "-o", "log", "./p"), "42")
    assert "exit_group(0)" in (program.work / "log").read_text(), ran
    ran = program.run("--", "strace", "./p")
    assert ran.status != 0 and "--allow-ptrace" in ran.err, ran
    remark("with --allow-ptrace; the default refuses and names it")


def test_CG01_valgrind(program, remark):
    need("valgrind")
    ran = works(program.run("--", "valgrind", "--leak-check=full", "./p", limit=60), "42")
    assert "no leaks are possible" in ran.err, ran
    remark("by default")


def test_CG01_ltrace_and_setarch(program, remark):
    works(program.run("--allow-ptrace", "--", "setarch", "-R", "./p"), "42")
    assert program.run("--", "setarch", "-R", "./p").status != 0
    if shutil.which("ltrace"):
        works(program.run("--allow-ptrace", "--", "ltrace", "./p"), "42")
    remark("without ASLR with --allow-ptrace; perf is not for a box, and cores are off")


def test_CG04_bubblewrap(place, remark):
    need("bwrap")
    script = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
              "--unshare-all", "--die-with-parent", "--new-session", "id", "-u"]
    ran = works(place.run("--nested-userns", "--", *script))
    assert ran.err == ""
    ran = place.run("--", *script)
    assert ran.status != 0 and "--nested-userns" in ran.err and "sys.namespace" in ran.err, ran
    remark("with --nested-userns; the default refuses and names it")


def test_CG04_unshare(place, remark):
    works(place.run("--nested-userns", "--", "unshare", "-Urmpf", "--mount-proc", "sh", "-c",
                    "mount -t tmpfs none /tmp && id -u && ls /proc | grep -c '^[0-9]'"), "0\n")
    works(place.run("--nested-userns", "--", "unshare", "-Urn", "true"))
    ran = place.run("--", "unshare", "-Ur", "true")
    assert ran.status != 0 and "--nested-userns" in ran.err, ran
    remark("with --nested-userns; the default refuses and names it")


def test_CG04_bawn(place, remark):
    shutil.copy(BAWN, place.work / "bawn")
    ran = place.run("--nested-userns", "--", "./bawn", "run", "--", "true")
    assert ran.status == 125 and "inside of a box" in ran.err, ran
    remark("bawn in bawn is refused and the error names the cause")


# --- 5. a long action ----------------------------------------------------------------------------

def test_CE06_with_a_handle(live):
    """Its output comes while it runs, to others too; another process cancels it."""
    task = live.begin()
    child = live.spawn("task", "exec", task, "--", "sh", "-c", "seq 5000; echo up; sleep 60")
    seen = b""
    while b"up\n" not in seen:
        seen += os.read(child.stdout.fileno(), 65536)
    assert eventually(lambda: live.verb("logs", task).out.endswith("\n5000\nup\n"))
    began = time.monotonic()
    assert live.verb("task", "end", task).status == 0
    out, _ = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 143 and time.monotonic() - began < 10
    assert seen + out == b"".join(b"%d\n" % i for i in range(1, 5001)) + b"up\n"
    live.assert_nothing_left()


# --- the table itself ----------------------------------------------------------------------------

def test_CA01_every_row_is_answered(remark):
    source = Path(__file__).read_text()
    named = set(re.findall(r"def test_(C[A-H]\d\d)", source)) | set(PENDING) | set(ELSEWHERE)
    assert set(ROWS) <= named, sorted(set(ROWS) - named)
    remark("every row has a test or a reason")
