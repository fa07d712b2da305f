"""Network rules of policies and flags: what the matcher says, and that nothing starts by halves."""
import json
import os
import subprocess

import pytest

from boxed import BAWN, place

__all__ = ["place"]


def verb(place, *arguments):
    return subprocess.run([BAWN, arguments[0], *place.options, *arguments[1:]], text=True,
                          capture_output=True, cwd=place.work, timeout=20, check=False,
                          env=dict(os.environ))


def of_policy(place, *arguments):
    return subprocess.run([BAWN, "policy", *map(str, arguments)], text=True, capture_output=True,
                          cwd=place.work, timeout=20, check=False)


def asked(place, *arguments):
    ran = verb(place, "explain", "--json", *arguments)
    assert ran.returncode in (0, 1), ran
    said = json.loads(ran.stdout)
    assert (ran.returncode == 1) == (said["verdict"] == "deny"), ran
    return said


@pytest.fixture(name="policy")
def policy_file(place):
    folder = place.work.parent / "policies"
    folder.mkdir(exist_ok=True)

    def write(text):
        path = folder / "policy.yaml"
        path.write_text("version: 1\n" + text)
        return path

    return write


def test_without_a_rule_nothing_is_allowed(place):
    said = asked(place, "--host", "example.org:443")
    assert said["network"] == "none" and said["rule"]["id"] == "egress.default", said
    ran = verb(place, "explain", "--host", "example.org:443")
    assert ran.returncode == 1 and "denied by built-in \"egress.default\"" in ran.stdout, ran


def test_a_policy_says_what_may_be_connected_to(place, policy):
    path = policy("network:\n  allow:\n    - {id: npm, host: registry.npmjs.org}\n"
                  "    - {host: '*.example.org', ports: [80], protocol: http, methods: [GET],"
                  " paths: ['/a/**']}\n"
                  "    - {host: 10.0.0.0/8, ports: [5432], protocols: [tcp]}\n"
                  "  ask:\n    - {host: ask.example.net}\n"
                  "  deny:\n    - {host: bad.example.org}\n")
    said = asked(place, "--policy", path, "--host", "Registry.NPMJS.org.:443")
    assert said["verdict"] == "allow" and said["needs"] == ["protocol"], said
    assert said["rule"] == {"id": "npm", "file": str(path), "line": 4}, said
    rows = [("registry.npmjs.org:80", "deny"), ("a.registry.npmjs.org:443", "deny"),
            ("10.0.0.1:5432", "allow"), ("10.0.0.1:443", "deny"), ("127.0.0.1:5432", "deny"),
            ("[::ffff:10.0.0.1]:5432", "deny"), ("ask.example.net:443", "ask"),
            ("bad.example.org:80", "deny"), ("a.example.org:80", "allow"),
            ("localhost:443", "deny"), ("169.254.169.254:80", "deny")]
    for host, verdict in rows:
        assert asked(place, "--policy", path, "--host", host)["verdict"] == verdict, host
    for url, verdict in [("https://registry.npmjs.org/x", "allow"),
                         ("http://www.example.org/a/b?c", "allow"),
                         ("http://www.example.org/b", "deny"),
                         ("http://www.example.org", "deny"),
                         ("https://www.example.org/a/b", "deny")]:
        assert asked(place, "--policy", path, "--url", url)["verdict"] == verdict, url
    ran = verb(place, "explain", "--policy", path, "--host", "registry.npmjs.org:443")
    assert f'may be allowed by "npm" {path}:4' in ran.stdout, ran
    assert "not known yet: what is spoken" in ran.stdout and "resolved later" in ran.stdout, ran


def test_flags_allow_below_a_denial_and_a_lock(place, policy):
    assert asked(place, "--allow-host", "a.example:8443", "--host",
                 "a.example:8443")["rule"]["file"] == "--allow-host"
    path = policy("network: {deny: [{host: a.example}]}\n")
    assert asked(place, "--policy", path, "--allow-host", "a.example", "--host",
                 "a.example:443")["verdict"] == "deny"
    path = policy("lock: [network]\n")
    ran = verb(place, "explain", "--policy", path, "--allow-host", "a.example", "--host",
               "a.example:443")
    assert ran.returncode == 1 and "is locked" in ran.stderr, ran
    assert asked(place, "--network", "none", "--host", "a.example:443")["network"] == "none"


@pytest.mark.parametrize("arguments, words", [
    (["--allow-host", "*"], "over-broad"),
    (["--allow-host", "*.co.uk"], "over-broad"),
    (["--allow-host", ""], "--allow-host"),
    (["--allow-host", "127.1"], "ends with a number"),
    (["--allow-host", "a.example:0"], "ports"),
    (["--network", "open"], "none or policy"),
    (["--purpose", "Two words"], "--purpose"),
    (["--host", "a.example"], "has no port, as in"),
    (["--host", "https://a.example"], "it is a URL, which --url asks about"),
    (["--host", "a\\b:1"], "has a byte that no name has"),
    (["--url", "ftp://a.example/"], "http://"),
    (["--url", "http://a.example/a b"], "escaped"),
    (["--url", "http://a.example/é"], "escaped"),
    (["--host", "a:1", "--url", "http://a/"], "exclude each other"),
])
def test_what_is_malformed_is_refused(place, arguments, words):
    ran = verb(place, "explain", *arguments)
    assert ran.returncode == 2 and words in ran.stderr, ran


@pytest.mark.parametrize("text, words", [
    ("[{host: '*'}]", "over-broad"), ("['*']", "over-broad"), ("['']", "network.allow"),
    ("[{host: '*.com'}]", "over-broad"), ("[{host: '*.github.io'}]", "over-broad"),
    ("[{host: ''}]", "host"), ("[{host: null}]", "host"), ("[{}]", 'lacks "host"'),
    ("[{host: 10.0.0.1/8}]", "behind its prefix"),
    ("[{host: a.example, tool: curl, dangerous: maybe}]", "dangerous"),
    ("null", "network.allow"),
])
def test_a_broken_list_is_a_fault_of_the_file(place, policy, text, words):
    path = policy(f"network:\n  allow: {text}\n")
    ran = place.run("--policy", path, "--", "touch", "started")
    assert ran.status == 125 and words in ran.err and f"{path}:3:" in ran.err, ran
    assert not (place.work / "started").exists()


def test_a_run_is_explained_with_its_rules(place, policy):
    path = policy("network:\n  allow:\n    - {id: npm, host: registry.npmjs.org}\n"
                  "  deny:\n    - {host: 10.0.0.0/8}\n")
    ran = verb(place, "explain", "--json", "--policy", path, "--allow-host", "a.example:22")
    lines = {line["text"]: line["rule"] for line in json.loads(ran.stdout)["connect"]}
    assert lines["registry.npmjs.org, ports 443, http, https, tls, ssh"]["id"] == "npm", lines
    assert lines["a.example, ports 22, http, https, tls, ssh"]["file"] == "--allow-host", lines
    assert "never: 10.0.0.0/8, ports 1-65535, any bytes" in lines, lines
    assert not any("and nothing else: no address outside" in text for text in lines), lines


def test_an_empty_list_allows_nothing(place, policy):
    path = policy("network: {allow: []}\n")
    assert asked(place, "--policy", path, "--host", "a.example:443")["network"] == "none"


def test_a_name_alone_is_a_rule(place, policy):
    path = policy("network:\n  allow: [pypi.org, '*.example.org', 10.1.2.3]\n"
                  "  deny: [evil.example.org]\n")
    for target, verdict in (("pypi.org:443", "allow"), ("pypi.org:80", "deny"),
                            ("a.example.org:443", "allow"), ("evil.example.org:443", "deny"),
                            ("10.1.2.3:443", "allow"), ("10.1.2.4:443", "deny")):
        assert asked(place, "--policy", path, "--host", target)["verdict"] == verdict, target


@pytest.mark.parametrize("rule, words", [
    ("host: a.example, protocol: udp", "about UDP"),
    ("host: a.example, inspect: true", "inspection"),
    ("host: a.example, methods: [GET]", "methods or paths"),
    ("host: a.example, requests-per-minute: 5", "counts requests"),
])
def test_what_a_start_refuses_is_told_beforehand(place, policy, rule, words):
    path = policy(f"network:\n  allow:\n    - {{{rule}}}\n")
    ran = place.run("--policy", path, "--", "true")
    assert ran.status == 125 and words in ran.err and f"{path}:4:7" in ran.err, ran
    ran = of_policy(place, "check", path)
    assert ran.returncode == 0 and f"{path}:4:7: not built: network.allow a.example " in ran.stdout
    assert words in ran.stdout, ran
    said = json.loads(of_policy(place, "check", "--json", path).stdout)["not_built"]
    assert [(row["line"], row["key"]) for row in said] == [(4, "network.allow")], said
    assert words in of_policy(place, "show", path).stdout


def test_a_proposal_that_no_start_would_take_is_not_adopted(place):
    (place.work / ".bawn.yaml").write_text(
        "version: 1\nnetwork: {allow: [{host: a.example, protocol: udp}]}\n")
    ran = of_policy(place, "adopt", "--yes")
    assert ran.returncode and "about UDP" in ran.stderr and "not adopted" in ran.stderr, ran


def test_ports_of_the_protocols_that_a_rule_names(place, policy):
    path = policy("network:\n  allow:\n    - {host: h.example, protocol: http}\n"
                  "    - {host: b.example, protocols: [http, https]}\n"
                  "    - {host: s.example, protocol: ssh}\n"
                  "    - {host: g.example, protocol: git}\n"
                  "    - {host: t.example, protocol: tcp}\n"
                  "    - {host: p.example, protocol: http, ports: [8080]}\n"
                  "    - n.example\n")
    wanted = {"h": (80,), "b": (80, 443), "s": (22,), "g": (9418,), "t": (443,), "p": (8080,),
              "n": (443,)}
    for name, ports in wanted.items():
        for port in (22, 80, 443, 8080, 9418):
            said = asked(place, "--policy", path, "--host", f"{name}.example:{port}")
            assert (said["verdict"] == "allow") == (port in ports), (name, port)


@pytest.mark.parametrize("rule, fault", [
    ("host: 10.1.0.0/16, ports: [22], match: ['10.1.2.3:22'], not_match: ['10.2.0.1:22']", None),
    ("host: 10.1.0.0/16, ports: [22], not_match: ['10.1.2.3:22']", "covers 10.1.2.3:22"),
    ("host: '2606:2800::/32', match: ['[2606:2800::1]:443'], not_match: ['[2607::1]:443']", None),
    ("host: a.example, protocol: http, match: ['A.example.:80'], not_match: ['a.example:443']",
     None),
    ("host: a.example, protocol: http, match: ['a.example:443']", "does not cover"),
    ("host: '*.a.example', ports: [1-9], match: ['b.a.example:9'], not_match: ['a.example:9']",
     None),
    ("host: a.example, match: ['2606:2800::1:443']", "HOST:PORT"),
])
def test_examples_are_matched_as_connections_are(place, policy, rule, fault):
    ran = of_policy(place, "check", policy(f"network:\n  allow:\n    - {{{rule}}}\n"))
    assert ran.returncode == (1 if fault else 0) and (fault or "a policy with") in ran.stdout, ran


def test_any_bytes_by_a_flag(place):
    for host, verdict in (("a.example:5432", "allow"), ("a.example:443", "deny")):
        ran = verb(place, "explain", "--json", "--allow-host", "a.example:5432/tcp",
                   "--allow-host", "10.1.0.0/16:22,8000-8010/tcp", "--host", host)
        assert json.loads(ran.stdout)["verdict"] == verdict, ran
    ran = verb(place, "explain", "--json", "--allow-host", "[2606::1]:22,8000-8010/tcp", "--",
               "true")
    assert "2606::1/128, ports 22, 8000-8010, any bytes" in ran.stdout, ran
    for text in ("a.example/tcp", "a.example:/tcp", "a.example:22/udp", "a.example:22/", "/tcp",
                 ":22/tcp", "a.example:22/tcp/tcp", "10.1.0.0/16/tcp", "a.example:22/TCP"):
        ran = place.run("--allow-host", text, "--", "true")
        assert ran.status in (125, 126) and f"--allow-host {text}" in ran.err, (text, ran)
