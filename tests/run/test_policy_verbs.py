"""bawn policy show, diff and schema: what policies say, in words, and the schema of editors."""
import json
import subprocess

import jsonschema
import pytest

from boxed import BAWN, ROOT, place

__all__ = ["place"]

PRESETS = ["review", "develop", "ci", "browse", "quarantine"]
SCHEMA = ROOT / "docs" / "schema" / "policy.schema.json"


def policy(place, verb, *arguments):
    return subprocess.run([BAWN, "policy", *verb.split(), *map(str, arguments)],
                          capture_output=True, text=True, cwd=place.work, timeout=20, check=False)


def write(place, name, text):
    folder = place.base / "policies"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_text("version: 1\n" + text)
    path.chmod(0o600)
    return path


def test_diff_says_what_is_new(place):
    before = write(place, "a.yaml", """\
filesystem:
  read: [/opt/data, /opt/gone]
  hide: [secret, old]
limits: {memory: 2G, pids: 64}
environment: {set: {A: one}}
tty: {allowed: false}
network: {allow: [{host: example.org}]}
workspace: staged
""")
    after = write(place, "b.yaml", """\
filesystem:
  read: [/opt/data/part, /opt/new]
  write: [/srv/x]
  hide: [secret]
  protect: [Makefile]
limits: {memory: 4G, timeout: 5m}
environment: {set: {A: two}}
network: {allow: [{host: example.org, ports: [443, 8080]}], deny: [{host: bad.example.org}]}
kernel: {ptrace: true}
""")
    ran = policy(place, "diff", before, after)
    assert ran.returncode == 1 and ran.stderr == "", ran
    allows, _, denies = ran.stdout.partition(f"{after} newly denies:\n")
    assert allows.startswith(f"{after} newly allows:\n")
    for line in (f'reading /opt/new ["filesystem.read" {after}:3]', "writing /srv/x",
                 "any look at old\n", f'limits.memory 4G, before 2G ["limits.memory" {after}:7]',
                 "limits.pids 1024 (built in), before 64\n", "the variable A=two",
                 "a terminal of an action's own\n", "a workspace that is direct, before staged\n",
                 "connecting to example.org (ports 443, ports 8080)",
                 "tracing of its own processes"):
        assert line in allows, (line, ran.stdout)
    for line in ("reading /opt/data\n", "reading /opt/gone\n", "changing Makefile",
                 "limits.timeout 5m, before none (built in)", "the variable A=one\n",
                 "connecting to bad.example.org", "connecting to example.org\n"):
        assert line in denies, (line, ran.stdout)
    # what lies below something that is allowed already is nothing new
    assert "/opt/data/part" not in ran.stdout
    assert "secret" not in ran.stdout


def test_diff_turned_round_swaps_the_halves(place):
    for a in PRESETS:
        for b in PRESETS:
            there = json.loads(policy(place, "diff --json", a, b).stdout)
            back = json.loads(policy(place, "diff --json", b, a).stdout)
            assert len(there["allows"]) == len(back["denies"]), (a, b)
            assert len(there["denies"]) == len(back["allows"]), (a, b)
            assert (a == b) == (not there["allows"] and not there["denies"])


def test_diff_of_equals_and_of_what_is_none(place):
    path = write(place, "a.yaml", "limits: {pids: 64}\n")
    same = write(place, "b.yaml", "# other words\nname: other\nlimits:\n  pids: 64\n")
    ran = policy(place, "diff", path, same)
    assert ran.returncode == 0 and "allows and denies what" in ran.stdout, ran
    # what is said and what is built in are the same
    empty, usual = write(place, "c.yaml", ""), write(place, "d.yaml", """\
workspace: direct
approval: on-request
tty: {allowed: true}
kernel: {ptrace: false}
limits: {pids: 1024}
""")
    assert policy(place, "diff", empty, usual).returncode == 0
    broken = write(place, "e.yaml", "limit: {}\n")
    ran = policy(place, "diff", path, broken)
    assert ran.returncode == 2 and f'{broken}:2:1: unknown key "limit"' in ran.stdout, ran
    assert policy(place, "diff", path, "absent").returncode == 2
    assert policy(place, "diff", path).returncode == 2


def test_show_names_each_place(place):
    path = write(place, "a.yaml", """\
preset: ci
limits: {timeout: 5m}
network:
  allow:
    - {host: example.org, ports: [443]}
""")
    ran = policy(place, "show", path)
    assert ran.returncode == 0, ran
    assert f'limits.timeout: 5m  ["limits.timeout" {path}:3]\n' in ran.stdout
    assert "limits.timeout: 1h" not in ran.stdout, "the file's value counts, not the preset's"
    assert 'limits.pids: 1024  ["limits.pids" preset ci:' in ran.stdout
    assert "network.allow: example.org, ports 443" in ran.stdout


@pytest.mark.parametrize("name", PRESETS)
def test_show_source_is_the_preset_itself(place, name):
    ran = policy(place, "show --source", name)
    assert ran.stdout == (ROOT / "src" / "policy" / "presets" / f"{name}.yaml").read_text()


def test_show_effective_is_what_a_start_has(place):
    path = write(place, "a.yaml", """\
filesystem: {hide: [secret]}
environment: {set: {TOKEN: hunter2}}
limits: {pids: 64}
""")
    ran = policy(place, "show --effective", *place.options, path)
    assert ran.returncode == 0, ran
    for line in (f'write    {place.work}  [built-in "workspace.write"]',
                 f'hide     {place.work}/secret  ["filesystem.hide" {path}:2, command line]',
                 f'variable TOKEN  ["environment.set" {path}:3, command line]',
                 f'limit    processes: 64  ["limits.pids" {path}:4, command line]',
                 'limit    open files: '):
        assert line in ran.stdout, (line, ran.stdout)
    assert "hunter2" not in ran.stdout
    hashed = ran.stdout.splitlines()[0].split()[1]
    started = place.run("--json", "--policy", path, "--", "true")
    assert started.result["policy"] == hashed
    assert policy(place, "show --effective", *place.options, "browse").returncode == 125


def test_schema_is_the_one_that_is_published(place):
    ran = policy(place, "schema")
    assert ran.returncode == 0, ran
    assert json.loads(ran.stdout) == json.loads(SCHEMA.read_text()), \
        "docs/schema/policy.schema.json is not what `bawn policy schema` prints"


GOOD = {
    "version": 1, "name": "x", "preset": "ci", "workspace": "direct",
    "filesystem": {"read": ["/opt/x", {"path": "/opt/y", "id": "y", "match": ["/opt/y/z"]}],
                   "hide": ["**/.env", {"name": "a", "reason": "b"}], "hide-strict": True},
    "limits": {"memory": "2G", "pids": 64, "cpus": 1.5}, "tty": {"allowed": False},
    "tasks": {"idle": "10m"}, "environment": {"pass": ["A"], "set": {"B": "c"}},
    "devices": ["/dev/kvm"],
    "network": {"allow": [{"host": "example.org", "ports": [443], "methods": ["GET"]}]},
}
BAD = [{}, {"version": 2}, {"version": 1, "worspace": "direct"},
       {"version": 1, "filesystem": {"reads": []}}, {"version": 1, "filesystem": {"read": "/x"}},
       {"version": 1, "tty": {"allowed": "yes"}}, {"version": 1, "workspace": "Direct"},
       {"version": 1, "network": {"allow": [["example.org"]]}},
       {"version": 1, "network": {"allow": [{"ports": [443]}]}},
       {"version": 1, "tasks": {"idle": "10"}}, {"version": 1, "environment": {"set": {"A": 1}}}]


def test_schema_and_loader_agree(place):
    """A JSON text is a YAML text: each of these is judged by both."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for number, text in enumerate([GOOD, *BAD]):
        path = place.base / f"{number}.yaml"
        path.write_text(json.dumps(text))
        path.chmod(0o600)
        by_schema = jsonschema.Draft202012Validator(schema).is_valid(text)
        ran = policy(place, "check", path)
        assert by_schema == (text is GOOD), text
        assert (ran.returncode == 0) == (text is GOOD), (text, ran)
