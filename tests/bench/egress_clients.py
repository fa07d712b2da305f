"""Programs that people use, against nginx: what a proxy costs them, beside egress-load, which costs
next to nothing itself. Each that is installed; a way is an argv and how its output is read.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

NGINX = "/usr/sbin/nginx"
NGINX_CONF = """
daemon off;
master_process off;
pid {place}/pid;
error_log {place}/error.log;
events {{ worker_connections 1024; }}
http {{
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path {place}/body;
	proxy_temp_path {place}/proxy;
	fastcgi_temp_path {place}/fastcgi;
	uwsgi_temp_path {place}/uwsgi;
	scgi_temp_path {place}/scgi;
	server {{
		listen {address}:{port};
		location / {{ default_type text/plain; return 200 "ok"; }}
	}}
}}
"""
# argv: the URL, "keep" or "new", clients, seconds
NODE_SCRIPT = """
const http = require("node:http");
const [url, what, clients, seconds] = process.argv.slice(2);
const one = what === "keep" ? async () => (await fetch(url)).text() :
	() => new Promise((done, failed) => http.get(url, { agent: false }, (answer) => {
		answer.resume().on("end", done);
	}).on("error", failed));
let count = 0, until;
async function client() {
	while (performance.now() < until) {
		await one();
		count++;
	}
}
(async () => {
	await one();
	const began = performance.now();
	until = began + Number(seconds) * 1000;
	await Promise.all(Array.from({ length: Number(clients) }, client));
	console.log("rate", count / (performance.now() - began) * 1000);
})();
"""
# the same, but how many each client asks for, which is one curl
CURL_SCRIPT = """
import subprocess, sys, time
url, what, clients, count = sys.argv[1:]
argv = ["curl", "-sS", "-f", *(["-H", "Connection: close"] * (what == "new")),
        f"{url}?[1-{count}]"]
began = time.monotonic()
running = [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for _ in range(int(clients))]
if any([each.wait() for each in running]):
    sys.exit("curl failed")
print("rate", int(clients) * int(count) / (time.monotonic() - began))
"""
CURL_REQUESTS = {"keep": 1500, "new": 400}


def start_nginx(place, address, port):
    """The server as a process of ours, or None where there is none."""
    if not os.path.exists(NGINX):
        return None
    place.mkdir()
    conf = place / "nginx.conf"
    conf.write_text(NGINX_CONF.format(place=place, address=address, port=port))
    return subprocess.Popen([NGINX, "-p", str(place), "-c", str(conf)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ways_of(url, clients, seconds, workspace):
    """Name -> argv that prints a rate, the same inside of a box and outside."""
    node, curl = Path(workspace) / "client.js", Path(workspace) / "client.py"
    node.write_text(NODE_SCRIPT)
    curl.write_text(CURL_SCRIPT)
    ways = {}
    for what in ("keep", "new"):
        if shutil.which("wrk"):
            ways[f"wrk {what}"] = ["wrk", "-t", "1", "-c", str(clients), "-d", f"{seconds:.0f}s",
                                   *(["-H", "Connection: close"] if what == "new" else []), url]
        if shutil.which("node"):
            ways[f"node {what}"] = ["node", str(node), url, what, str(clients), str(seconds)]
        if shutil.which("curl"):
            ways[f"curl {what}"] = ["/usr/bin/python3", str(curl), url, what, str(clients),
                                    str(CURL_REQUESTS[what])]
    return ways


def rate_of(argv):
    text = subprocess.run(argv, stdout=subprocess.PIPE, timeout=120, check=True, text=True).stdout
    if errors := re.search(r"Socket errors:.*|Non-2xx.*", text):
        raise SystemExit(f"{argv[0]}: {errors[0]}")
    return float(re.search(r"^(?:rate|Requests/sec:)\s+([0-9.]+)", text, re.M)[1])
