"""The benches of egress: from inside of a box through bawn's proxy, side by side with squid and
with no proxy at all. All of it is in a network namespace of its own, on one loopback.

Run as `egress.py BAWN LOAD STATE WORKSPACE SECONDS ROUNDS` in such a namespace; prints one line of
JSON with the medians and the numbers of each round. Two loads: egress-load, a client and a server
that do next to nothing themselves, and the programs of egress_clients.py.
"""
import json
import os
import pwd
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import egress_clients

ORIGIN, PORT, NGINX_PORT, SQUID_PORT = "203.0.113.5", "8080", "8081", 13128
CLIENTS, IDLE = 16, 1000
BIG = 200 * 1024 * 1024
SQUID = "/usr/sbin/squid"
SQUID_CONF = """
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log {place}/cache.log
pid_filename {place}/pid
coredump_dir {place}
acl any_port port 1-65535
via off
shutdown_lifetime 0 seconds
logfile_rotate 0
pinger_enable off
netdb_filename none
workers 1
"""


def wait_for(port, address="127.0.0.1"):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody listens on port {port}")


def start_squid(place):
    place.mkdir()
    if os.geteuid() == 0:
        account = pwd.getpwnam("proxy")
        os.chown(place, account.pw_uid, account.pw_gid)
        place.parent.chmod(0o755)
    conf = place / "squid.conf"
    conf.write_text(SQUID_CONF.format(port=SQUID_PORT, place=place))
    # its name is that of its shared memory, too
    process = subprocess.Popen([SQUID, "-N", "-n", f"bench{os.getpid()}", "-f", str(conf)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(SQUID_PORT)
    return process


def answer_of(argv):
    ran = subprocess.run(argv, stdout=subprocess.PIPE, timeout=120, check=True)
    return json.loads(ran.stdout)


def pss_kb(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def roles_of(pid):
    """pid of each role below a supervisor, by name."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text("utf-8")
        except OSError:
            continue
        parent = re.search(r"^PPid:\t(\d+)$", text, re.M)
        name = re.search(r"^Name:\t(.*)$", text, re.M)[1]
        if name in ("bawn-proxy", "bawn-dialer") and int(parent[1]) == pid:
            found[name] = int(status.parent.name)
    return found


def idle_memory(bawn, load):
    # `idle` holds its tunnels until its stdin ends
    argv = bawn[:-1] + ["--stdin", "--", load, "idle", str(IDLE), "1", "198.18.255.253:3128",
                        ORIGIN, PORT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        roles = roles_of(process.pid)
        assert len(roles) == 2, roles
        memory = {name: pss_kb(pid) for name, pid in roles.items()}
        process.stdin.close()
    return memory


def beside_idle(bawn, load, seconds):
    """p99 of others while 2,000 connections stand idle in the same task's proxy."""
    script = (f"ulimit -n 8192 2>/dev/null; {load} idle 2000 1 198.18.255.253:3128 {ORIGIN} {PORT} "
              f"< <(sleep {seconds + 30}) > idle.out & "
              f"until grep -q ready idle.out 2>/dev/null; do sleep 0.1; done; "
              f"{load} connect {CLIENTS} {seconds} 198.18.255.253:3128 {ORIGIN} {PORT}; kill %1")
    return answer_of(bawn + ["bash", "-c", script])


def of_clients(bawn_path, state, workspace, place, seconds, rounds):
    """Rates of programs that people use: name -> inside of a box, and with no proxy."""
    nginx = egress_clients.start_nginx(place / "nginx", ORIGIN, NGINX_PORT)
    if nginx is None:
        return {}
    bawn = [bawn_path, "run", "--state-dir", state, "--allow-host", f"{ORIGIN}:{NGINX_PORT}", "--"]
    found = {}
    try:
        wait_for(int(NGINX_PORT), ORIGIN)
        url = f"http://{ORIGIN}:{NGINX_PORT}/"
        ways = egress_clients.ways_of(url, CLIENTS, max(1, seconds), workspace)
        for _ in range(rounds):
            for name, argv in ways.items():
                each = found.setdefault(name, ([], []))
                each[0].append(egress_clients.rate_of(bawn + argv))
                each[1].append(egress_clients.rate_of(argv))
    finally:
        nginx.kill()
        nginx.wait()
    return {name: [statistics.median(rates) for rates in each] for name, each in found.items()}


def start_ms(bawn):
    began = time.perf_counter_ns()
    subprocess.run(bawn + ["/usr/bin/true"], check=True, timeout=60)
    return (time.perf_counter_ns() - began) / 1e6


def main():
    bawn_path, load, state, workspace, seconds, rounds = sys.argv[1:]
    seconds, rounds = float(seconds), int(rounds)
    for words in ("link set lo up", f"addr add {ORIGIN}/32 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    # a run makes more connections than there are ports, each of which rests for a minute
    for name, value in (("ip_local_port_range", "1024 65535"), ("tcp_tw_reuse", "1"),
                        ("tcp_max_tw_buckets", "1024")):
        Path(f"/proc/sys/net/ipv4/{name}").write_text(value, encoding="ascii")
    os.chdir(workspace)
    inside = shutil.copy(load, os.path.join(workspace, "load"))
    plain = [bawn_path, "run", "--state-dir", state, "--"]
    bawn = plain[:-1] + ["--allow-host", f"{ORIGIN}:{PORT}", "--"]
    server = subprocess.Popen([load, "serve", ORIGIN, PORT, str(BIG)])
    place = Path(tempfile.mkdtemp(prefix="bawn-squid.", dir="/var/tmp"))
    squid = start_squid(place / "squid") if os.path.exists(SQUID) else None
    door, via = "198.18.255.253:3128", f"127.0.0.1:{SQUID_PORT}"
    tail = [ORIGIN, PORT]
    ways = {
        "connect": bawn + [inside, "connect", str(CLIENTS), str(seconds), door, *tail],
        "new": bawn + [inside, "new", str(CLIENTS), str(seconds), "-", *tail],
        "keep": bawn + [inside, "keep", str(CLIENTS), str(seconds), "-", *tail],
        "body": bawn + [inside, "body", "1", "1", door, *tail],
        "body-plain": bawn + [inside, "body", "1", "1", "-", *tail],
        "direct-new": [load, "new", str(CLIENTS), str(seconds), "-", *tail],
        "direct-keep": [load, "keep", str(CLIENTS), str(seconds), "-", *tail],
        "direct-body": [load, "body", "1", "1", "-", *tail],
    }
    if squid:
        ways["squid-connect"] = ["env", "LOAD_ONE_ADDRESS=1", load, "connect", str(CLIENTS),
                                 str(seconds), via, *tail]
        ways["squid-body"] = [load, "body", "1", "1", via, *tail]
    found = {name: [] for name in ways}
    starts = {"plain": [], "captured": []}
    try:
        for _ in range(rounds):
            for name, argv in ways.items():
                found[name].append(answer_of(argv))
        clients = of_clients(bawn_path, state, workspace, place, seconds, rounds)
        for _ in range(40):
            starts["plain"].append(start_ms(plain))
            starts["captured"].append(start_ms(bawn))
        memory = idle_memory(bawn, inside)
        crowded = beside_idle(bawn, inside, seconds)
    finally:
        server.send_signal(signal.SIGKILL)
        if squid:
            squid.terminate()
            squid.wait()
        server.wait()
        shutil.rmtree(place)
    middle = {name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
              for name, runs in found.items()}
    print(json.dumps({"rows": middle, "memory": memory, "crowded": crowded,
                      "clients": clients,
                      "starts": {name: [statistics.median(each), min(each)]
                                 for name, each in starts.items()}}))


main()
