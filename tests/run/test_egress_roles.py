"""
The supervisor's side of a task's network, with roles that lie (tests/tools/lying-roles.c): whatever
a role that was taken over says, dies of or leaves out, the task goes on without a network, it is on
record, and nothing is started again.
"""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from boxed import BAWN, LIMIT_S, Place, eventually, place, select_ready  # noqa: F401
from test_trace_run import chains

BUILD = os.path.dirname(BAWN)
ROLES = ("bawn-proxy", "bawn-dialer")
ALLOW = ["--allow-host", "allowed.example:443"]
pytestmark = pytest.mark.skipif(
    b"--allow-host" not in subprocess.run([BAWN, "run", "--help"], capture_output=True,
                                          check=False).stdout,
    reason="this build has no option that gives a box a network")


@pytest.fixture(name="lying", scope="module")
def _lying(tmp_path_factory):
    """A bawn with roles of ours beside it."""
    home = tmp_path_factory.mktemp("lying")
    for name in ("bawn", "bawn-parse", "bawn-sign", "bawn-pack", "bawn-scope", "bawn-probe"):
        shutil.copy(os.path.join(BUILD, name), home / name)
    for name in ROLES:
        shutil.copy(os.path.join(BUILD, "bawn-lying-roles"), home / name)
    return home


def run(place, lying, script, *options, **keywords):
    argv = [lying / "bawn", "run", *place.options, *ALLOW, "--json", *options, "--", "bash", "-c",
            script]
    return subprocess.run(argv, cwd=place.work, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=LIMIT_S, check=False, **keywords)


def result_of(ran):
    return json.loads(ran.stdout.splitlines()[-1])


def chain_of(place):
    chain, = chains(place).values()
    return chain


# Connects, and waits for what becomes of it; then again: there is nobody any more.
SCRIPT = """
go() {{ (exec 3<>/dev/tcp/1.2.3.4/$1 || exit 7; timeout 10 cat <&3) 2>/dev/null; }}
go {port}
for i in 1 2 3 4 5 6 7 8 9 10; do go 443; [ $? = 7 ] && exit 0; sleep 0.1; done
exit 9
"""


@pytest.mark.parametrize("port, role", [
    (1001, "bawn-proxy"), (1002, "bawn-proxy"), (1003, "bawn-proxy"), (1004, "bawn-proxy"),
    (1006, "bawn-proxy"), (1007, "bawn-proxy"), (1008, "bawn-proxy"), (1009, "bawn-proxy"),
    (1010, "bawn-proxy"), (1011, "bawn-proxy"), (1012, "bawn-dialer"), (1013, "bawn-dialer"),
    (1017, "bawn-proxy"), (1018, "bawn-proxy"), (1019, "bawn-proxy"),
])
def test_lie_ends_the_network(place, lying, port, role):
    ran = run(place, lying, SCRIPT.format(port=port))
    assert ran.returncode == 0, ran
    codes = [denial["code"] for denial in result_of(ran)["denials"]]
    assert "net.down" in codes, ran
    alarms = [record["body"] for record in chain_of(place) if record["type"] == "net.alarm"]
    assert len(alarms) == 1
    # one that ends takes the other with it, and either may be heard of first
    assert alarms[0]["role"] == role or (port in (1003, 1004, 1013) and alarms[0]["role"] in ROLES)
    assert not (set(ROLES) & running()), "a role was left, or started again"
    place.assert_nothing_left()


def test_a_proxy_that_does_not_end_is_on_record(place, lying):
    """What it did not tell of its connections is missing, and that is said; nobody waits long."""
    began = time.monotonic()
    ran = run(place, lying, "exec 3<>/dev/tcp/1.2.3.4/1016; sleep 0.5; exit 3")
    assert ran.returncode == 3 and time.monotonic() - began < 15, ran
    alarm, = [record["body"] for record in chain_of(place) if record["type"] == "net.alarm"]
    assert (alarm["role"], alarm["what"]) == ("bawn-proxy", "it did not end with its task")
    assert not (set(ROLES) & running())


def running():
    found = set()
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    name = file.read().strip()
                if os.stat(f"/proc/{pid}").st_uid == os.geteuid():
                    found.add(name)
            except OSError:
                pass
    return found


def test_flood_is_counted(place, lying):
    """100,000 flows cost the record some hundred lines, and the supervisor nothing else."""
    ran = run(place, lying, SCRIPT.format(port=1005).replace("exit 9", "exit 0"))
    assert ran.returncode == 0, ran
    flows = [record["body"] for record in chain_of(place) if record["type"] == "net.flow"]
    assert 0 < len(flows) < 5000
    assert sum(flow["left_out"] for flow in flows) + len(flows) > 10000
    targets = result_of(ran)["network"]["targets"]
    assert max(target["count"] for target in targets) > 10000


def test_flood_hides_nothing(place, lying):
    """5,000 refused names take no room of 2,000 allowed connections and their dials."""
    ran = run(place, lying, "exec 3<>/dev/tcp/1.2.3.4/1015; cat <&3; sleep 2; exit 0")
    assert ran.returncode == 0, ran
    chain = chain_of(place)
    flows = [record["body"] for record in chain if record["type"] == "net.flow"]

    def stand_for(records, **fields):
        return sum(one["repeated"] or 1 for one in records
                   if all(one[name] == value for name, value in fields.items()))
    for phase in ("opened", "closed"):
        assert stand_for(flows, phase=phase, host="allowed.example") == 2000
    assert stand_for(flows, phase="closed", reason="a connection was reset") == 2000
    assert sum(flow["bytes_up"] for flow in flows) == 20000
    dials = [record["body"] for record in chain if record["type"] == "net.dial"]
    assert stand_for(dials, host="allowed.example", outcome="done") == 2000
    refused = [flow for flow in flows if flow["verdict"] == "deny"]
    assert stand_for(refused) + sum(flow["left_out"] for flow in flows) == 5000
    assert len(chain) < 3000
    network = result_of(ran)["network"]
    row, = [one for one in network["targets"] if one["host"] == "allowed.example"]
    assert (row["verdict"], row["count"], row["bytes_up"]) == ("allow", 2000, 20000)
    assert len(network["targets"]) == 65 and network["dropped"] == 5000 - 64


def test_denial_names_the_way(place, lying):
    ran = run(place, lying, "exec 3<>/dev/tcp/1.2.3.4/443; cat <&3; exit 3")
    denial, = result_of(ran)["denials"]
    assert (denial["code"], denial["object"], denial["evidence"]) == (
        "net.host", "denied.example:443", "measured")
    assert denial["remedy"] == "--allow-host denied.example:443"
    target, = result_of(ran)["network"]["targets"]
    assert (target["host"], target["port"], target["verdict"], target["count"]) == (
        "denied.example", 443, "deny", 1)


# A socket that `sleep` has as well, and then a connection of it by somebody else.
SHARED = """
import ctypes, os, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
s = socket.socket()
child = subprocess.Popen(["sleep", "60"], pass_fds=[s.fileno()])
while "sleep" not in open(f"/proc/{child.pid}/comm").read():
    time.sleep(0.01)

def connect(s):
    s.connect(("1.2.3.4", 1014))
    print(s.recv(100).decode(), flush=True)

def other_table(fd, ready, go):
    if libc.unshare(0x400) < 0:  # CLONE_FILES
        os._exit(9)
    ready.set()
    go.wait()
    connect(socket.socket(fileno=fd))

def in_thread():
    ready, go, fd = threading.Event(), threading.Event(), s.detach()
    thread = threading.Thread(target=other_table, args=(fd, ready, go))
    thread.start()
    ready.wait()
    os.close(fd)
    go.set()
    return thread

if sys.argv[1] == "both":
    connect(s)
elif sys.argv[1] == "hidden":
    if libc.prctl(4, 0, 0, 0, 0) < 0:  # PR_SET_DUMPABLE
        os._exit(9)
    connect(s)
elif sys.argv[1] == "thread":
    in_thread().join()
else:
    # the thread that the process began with is gone, and what shows it says nothing any more
    thread = in_thread()
    threading.Thread(target=lambda: (thread.join(), child.kill(), os._exit(0))).start()
    libc.pthread_exit(None)
child.kill()
"""


@pytest.mark.parametrize("way", ["both", "hidden", "thread", "leaderless"])
def test_who_cannot_be_told(place, lying, way):
    """Another program had the socket before there was a connection, and does not say so."""
    (place.work / "shared.py").write_text(SHARED)
    ran = run(place, lying, f"python3 shared.py {way}")
    known, action, _, inode = map(int, ran.stdout.splitlines()[0].split())
    assert (known, action, inode) == (0, 0, 0), ran


def test_who_connects(place, lying):
    """The program that has the socket, whatever else runs beside it."""
    for beside in ("", "(sleep 60 & exec true) & python3 -c 'import threading,time;"
                       "threading.Thread(target=lambda:time.sleep(3)).start()' & sleep 0.5; "):
        ran = run(place, lying, beside + "exec 3<>/dev/tcp/1.2.3.4/1014; read -r line <&3; "
                  "echo $line")
        known, action, device, inode = map(int, ran.stdout.splitlines()[0].split())
        bash = os.stat(shutil.which("bash"))
        assert (known, action, device, inode) == (1, 1, bash.st_dev, bash.st_ino), ran


def test_who_connects_in_a_live_task(place, lying):
    """Where actions begin all the time, and what begins them lets nobody look at it."""
    def verb(*words):
        ran = subprocess.run([lying / "bawn", "task", words[0], *place.options, *words[1:]],
                             cwd=place.work, stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=LIMIT_S, check=False, text=True)
        assert ran.returncode == 0, ran
        return ran.stdout
    task = verb("start", *ALLOW).strip()
    # at once: it may connect before it was heard that it runs
    connect = "exec 3<>/dev/tcp/1.2.3.4/1014; read -r line <&3; echo $line"
    bash = os.stat(shutil.which("bash"))
    # pylint: disable-next=consider-using-with # ends with its task
    beside = subprocess.Popen([lying / "bawn", "task", "exec", *place.options, task, "--", "sleep",
                               "60"], cwd=place.work, stdin=subprocess.DEVNULL)
    try:
        for number in range(2, 14):
            said = verb("exec", task, "--", "bash", "-c", connect)
            known, action, device, inode = map(int, said.split())
            assert (known, device, inode) == (1, bash.st_dev, bash.st_ino), said
            assert action in (number - 1, number), said
    finally:
        verb("end", task)
        beside.wait(LIMIT_S)


def test_who_is_not_searched_for_long(place, lying):
    """A task with more open files than are looked through gets no word, and holds nobody up."""
    many = ("import os, resource, socket, time\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(7)[1],) * 2)\n"
            "most = min(resource.getrlimit(7)[1] - 50, 20000)\n"
            "for i in range(most):\n    os.dup(0)\n"
            "children = []\n"
            "for i in range(70000 // most):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n        time.sleep(60)\n"
            "    children.append(child)\n"
            "s = socket.create_connection(('1.2.3.4', 1014))\nprint(s.recv(100).decode(), "
            "flush=True)\n[os.kill(child, 9) for child in children]\n")
    ran = run(place, lying, f'python3 -c "{many}"')
    assert ran.stdout.splitlines()[0] == b"2 0 0 0", ran


def test_nothing_runs_without_a_connection(place, lying):
    """Nor does the box's own loopback start anything."""
    script = ("python3 -c 'import socket\ns=socket.socket();s.bind((\"127.0.0.1\",0));s.listen()\n"
              "c=socket.create_connection(s.getsockname());print(1)'; echo ready; sleep 60")
    child = subprocess.Popen([lying / "bawn", "run", *place.options, *ALLOW, "--", "bash", "-c",
                              script], cwd=place.work, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"1\n"
    assert child.stdout.readline() == b"ready\n"
    names = children(child.pid)
    child.send_signal(signal.SIGTERM)
    child.wait(LIMIT_S)
    child.stdout.close()
    assert not set(ROLES) & set(names)


def children(pid):
    names = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                stat = file.read().decode()
        except OSError:
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if int(rest.split()[1]) == pid:
            names[name] = int(entry)
    return names


def start(place, lying, script):
    return subprocess.Popen([lying / "bawn", "run", *place.options, *ALLOW, "--json", "--", "bash",
                             "-c", script], cwd=place.work, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("role", ROLES)
def test_killed_role(place, lying, role):
    """One of them dies: both go, and who connects is refused."""
    child = start(place, lying, """
        exec 3<>/dev/tcp/1.2.3.4/443; cat <&3 2>/dev/null; echo ready
        until ! (exec 3<>/dev/tcp/1.2.3.4/443) 2>/dev/null; do sleep 0.05; done; echo refused""")
    try:
        assert select_ready(child) == b"ready\n"
        roles = children(child.pid)
        assert set(ROLES) <= set(roles)
        os.kill(roles[role], signal.SIGKILL)
        out, _ = child.communicate(timeout=LIMIT_S)
    finally:
        child.kill()
    assert b"refused" in out
    assert not {name: pid for name, pid in roles.items() if name in ROLES
                and os.path.exists(f"/proc/{pid}")}
    place.assert_nothing_left()


def ends_of(pid):
    """What a process has open, without what leads nowhere."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            pass
    return {number: text for number, text in found.items() if text != "/dev/null"
            and not text.startswith("/memfd:bawn-config")}


def test_edges(place, lying):
    """Each process of ours has its own edges, and nothing of the box's processes any of them."""
    child = start(place, lying, """
        exec 3<>/dev/tcp/1.2.3.4/443; cat <&3 2>/dev/null; exec 3<&-; echo ready; sleep 60""")
    try:
        assert select_ready(child) == b"ready\n"
        pids = children(child.pid)
        proxy, dialer = ends_of(pids["bawn-proxy"]), ends_of(pids["bawn-dialer"])
        inside = {}
        for name, pid in pids.items():
            if name not in ROLES and os.access(f"/proc/{pid}/fd", os.R_OK):
                inside |= ends_of(pid)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    # besides its configuration: the supervisor, the peer, and of the proxy the listeners
    assert set(proxy) == {4, 5, 6, 7} and set(dialer) == {4, 5}
    assert all(text.startswith("socket:") for text in [*proxy.values(), *dialer.values()])
    shared = set(proxy.values()) & set(dialer.values())
    assert not shared, "a descriptor is in both"
    assert not (set(proxy.values()) | set(dialer.values())) & set(inside.values())


def test_edges_of_the_real_roles(place):
    """The same of those that are installed: nobody but root looks at them at all."""
    # pylint: disable-next=consider-using-with # ended below
    child = subprocess.Popen([BAWN, "run", *place.options, *ALLOW, "--", "bash", "-c",
                              "exec 3<>/dev/tcp/1.2.3.4/443; cat <&3 2>/dev/null; exec 3<&-; "
                              "curl -s -m 5 http://allowed.example:443/ >/dev/null; "
                              "echo ready; sleep 60"], cwd=place.work, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert select_ready(child) == b"ready\n"
        pids = children(child.pid)
        roles = [pids[name] for name in ROLES]
        if os.geteuid() != 0:
            for pid in roles:
                with pytest.raises(PermissionError):
                    os.listdir(f"/proc/{pid}/fd")
            return
        proxy, dialer = map(ends_of, roles)
        others = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) not in (*roles, child.pid):
                try:
                    others |= {(entry, number): text for number, text in ends_of(entry).items()}
                except OSError:
                    pass
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    for ends, edges in ((proxy, {4, 5, 6, 7}), (dialer, {4, 5})):
        assert {number for number, text in ends.items() if text.startswith("socket:")} == edges
        assert {text for number, text in ends.items() if number not in edges} == {
            "anon_inode:[eventpoll]"}
    own = {text for text in [*proxy.values(), *dialer.values()] if text.startswith("socket:")}
    assert len(own) == 6 and not own & set(others.values())


def test_freeze_holds_the_roles(place, lying):
    child = start(place, lying, """
        exec 3<>/dev/tcp/1.2.3.4/443; cat <&3 2>/dev/null; echo ready; sleep 60""")
    try:
        assert select_ready(child) == b"ready\n"
        pids = {pid for name, pid in children(child.pid).items() if name in ROLES}
        task = next((place.state / "tasks").iterdir()).name

        def verb(word):
            return subprocess.run([lying / "bawn", word, *place.options, task],
                                  capture_output=True, timeout=LIMIT_S, check=False)
        # a young action has no control socket
        assert eventually(lambda: verb("freeze").returncode == 0)
        assert eventually(lambda: states(pids) == {"T"})
        assert verb("thaw").returncode == 0
        assert eventually(lambda: not states(pids) & {"T"})
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can enter the network of a box")
def test_freeze_before_the_first_connection(place, lying):
    """What waits at a listener while the task is frozen starts the roles when it goes on."""
    child = start(place, lying, "echo ready; sleep 60")
    try:
        assert select_ready(child) == b"ready\n"
        task = next((place.state / "tasks").iterdir()).name

        def verb(*words):
            return subprocess.run([lying / "bawn", words[0], *place.options, *words[1:]],
                                  capture_output=True, timeout=LIMIT_S, check=False)
        assert eventually(lambda: verb("freeze", task).returncode == 0)
        with subprocess.Popen(["nsenter", "--target", str(children(child.pid)["sleep"]), "--net",
                               shutil.which("python3"), "-c", "import socket; s = "
                               "socket.create_connection(('1.2.3.4', 443)); print('connected', "
                               "flush=True); s.recv(1)"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as outside:
            assert outside.stdout.readline() == b"connected\n"
            # turns of the supervisor's loop
            for _ in range(3):
                assert b"frozen" in verb("ps", "--json").stdout
            assert not set(ROLES) & set(children(child.pid))
            assert verb("thaw", task).returncode == 0
            assert eventually(lambda: set(ROLES) <= set(children(child.pid)))
            outside.kill()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def states(pids):
    found = set()
    for pid in pids:
        with open(f"/proc/{pid}/stat", "rb") as file:
            found.add(file.read().rpartition(b")")[2].split()[0].decode())
    return found
