"""bawn policy check: which files are policies, and what is wrong where, word for word.

    BAWN_GOLDEN=write python3 -m pytest tests/run/test_policy_check.py     writes the words anew
"""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, ROOT, place

__all__ = ["place"]

BROKEN = ROOT / "tests" / "golden" / "policies"
GOLDEN = ROOT / "tests" / "golden" / "policy-faults.txt"
PRESETS = ROOT / "src" / "policy" / "presets"


def check(folder, *arguments):
    return subprocess.run([BAWN, "policy", "check", *arguments], capture_output=True, text=True,
                          cwd=folder, timeout=20, check=False)


@pytest.fixture
def folder(place):
    made = place.base / "policies"
    made.mkdir(mode=0o700)
    return made


def write(folder, text, name="policy.yaml", mode=0o600):
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def test_broken_files_are_refused_word_for_word(folder):
    said = []
    names = sorted(path.name for path in BROKEN.glob("*.yaml"))
    assert len(names) >= 30
    for name in names:
        shutil.copyfile(BROKEN / name, folder / name)
        ran = check(folder, name)
        assert ran.returncode == 1 and ran.stderr == "", ran
        assert all(line.startswith(f"{name}:") or line.startswith("more ")
                   for line in ran.stdout.splitlines()), ran
        said.append(ran.stdout)
    text = "".join(said)
    if os.environ.get("BAWN_GOLDEN") == "write":
        GOLDEN.write_text(text)
    assert text.splitlines() == GOLDEN.read_text().splitlines()


@pytest.mark.parametrize("name", ["review", "develop", "ci", "browse", "quarantine"])
def test_presets_are_policies_that_are_read_in_a_minute(folder, name):
    text = (PRESETS / f"{name}.yaml").read_text()
    assert len(text.splitlines()) <= 30
    write(folder, text)
    ran = check(folder, "policy.yaml")
    assert ran.returncode == 0 and "a policy with" in ran.stdout, ran


def test_everything_that_a_policy_can_say(folder):
    write(folder, """\
version: 1
name: everything
workspace: direct
confinement: enforced
approval: on-request
filesystem:
  read: [/opt/data, {path: ~/notes, id: notes, match: [~/notes/a], not_match: [~/other]}]
  write: [/srv/scratch]
  hide:
    - "**/.env"
    - {name: "**/*.key", match: [a/b.key, c.key], not_match: [a.keys, /etc/a.key]}
  protect: [Makefile]
  hide-strict: false
exec:
  deny: [{program: curl, match: [curl -s x, /usr/bin/curl], not_match: [wget]}]
  sets: [no-mounts]
network:
  allow:
    - {host: "*.example.org", ports: [443, 8000-8010], methods: [GET], paths: ["/v1/*"],
       tool: /usr/bin/git, purpose: builds, from: 2026-01-01, until: 2026-12-31,
       max-bytes: 1G, match: ["a.example.org:8001"], not_match: ["example.org:443"]}
  deny: [{host: bad.example.org}]
approvals: {ask: [destructive], ask-methods: [DELETE], targets: [{label: production, hosts: [a.b]}]}
packages: {mirrors: ["https://mirror.example.org/npm"]}
credentials: [{name: npm, host: registry.example.org, scopes: [publish], until: 2026-12-31}]
limits: {memory: 2G, cpus: "1.5", pids: 64, timeout: 5m, io: 50M/s}
tty: {allowed: true}
tasks: {live: true, idle: 10m, lifetime: 8h}
isolation: {floor: os}
environment: {pass: [TOKEN], set: {CI: "true", EMPTY: ""}}
devices: [/dev/kvm]
kernel: {nested-userns: false, ptrace: true}
trace: {record: true, record-reads: false}
exceptions: [{command: git push, owner: me, reason: releases, expires: 2026-12-31}]
tests:
  - {command: git push, verdict: allow}
  - {argv: [git, push], verdict: ask, rule: x, id: t, reason: why}
  - {host: "a.b:443", verdict: deny}
  - {url: "https://a.b/", verdict: deny}
  - {path: src, access: write, verdict: allow}
""")
    ran = check(folder, "--json", "policy.yaml")
    assert ran.returncode == 0, ran
    said = json.loads(ran.stdout)
    assert said["valid"] and said["faults"] == []
    missing = {row["key"] for row in said["not_built"]}
    assert {"credentials", "packages.mirrors"} <= missing
    assert not missing & {"exec.deny", "exec.sets", "approvals.ask", "exceptions",
                          "filesystem.read", "limits.memory", "network.deny", "trace.record-reads",
                          "isolation.floor", "workspace"}


def test_a_place_that_a_run_would_refuse_is_told(place, folder):
    path = write(folder, "version: 1\n")
    ran = check(place.work, str(path))
    assert ran.returncode == 0 and "not to be used from here" not in ran.stdout, ran
    ran = check(folder, "policy.yaml")
    assert ran.returncode == 0 and f"it lies in the workspace {folder}" in ran.stdout, ran
    assert json.loads(check(folder, "--json", "policy.yaml").stdout)["in_workspace"] == str(folder)


def test_a_file_that_others_could_change_is_no_policy(folder):
    good = "version: 1\n"
    for mode, word in ((0o602, "everybody"), (0o666, "everybody")):
        write(folder, good, mode=mode)
        ran = check(folder, "policy.yaml")
        assert ran.returncode == 1 and word in ran.stderr, ran
    write(folder, good)
    folder.chmod(0o777)
    ran = check(folder, "policy.yaml")
    assert ran.returncode == 1 and "directory that everybody can write" in ran.stderr, ran
    # in a directory like /tmp nobody can replace what is another's
    folder.chmod(0o1777)
    assert check(folder, "policy.yaml").returncode == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")
def test_a_file_of_somebody_else_is_no_policy(folder):
    path = write(folder, "version: 1\n")
    os.chown(path, 65534, 65534)
    ran = check(folder, "policy.yaml")
    assert ran.returncode == 1 and "belongs to another user (uid 65534)" in ran.stderr, ran
    os.chown(path, 0, 65534)
    path.chmod(0o660)
    ran = check(folder, "policy.yaml")
    assert ran.returncode == 1 and "another group (gid 65534)" in ran.stderr, ran
    os.chown(path, 0, 0)
    os.chown(folder, 65534, 65534)
    ran = check(folder, "policy.yaml")
    assert ran.returncode == 1 and "directory of another user" in ran.stderr, ran


def test_what_is_no_file(folder):
    os.mkfifo(folder / "fifo", 0o600)
    (folder / "loop").symlink_to("loop")
    with open(folder / "giant", "wb") as file:
        file.truncate(1 << 40)
    (folder / "giant").chmod(0o600)
    for name, word in (("fifo", "no regular file"), (".", "no regular file"), ("loop", "loop"),
                       ("absent", "absent"), ("giant", "larger than"),
                       ("/dev/zero", "no regular file")):
        ran = check(folder, name)
        assert ran.returncode == 1 and word in ran.stderr and ran.stdout == "", ran
    assert check(folder).returncode == 2
    assert check(folder, "a", "b").returncode == 2


def test_bombs_end_quickly(folder):
    """Each would take minutes, or all memory, of a reader that does what it is told."""
    laughs = "version: 1\na0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 40))
    texts = [laughs, "[" * 500000, "{" * 500000, "a: " * 100000, "? " * 300000, "- " * 300000,
             "version: 1\nname: " + "x" * 900000, "version: 1\n" + "#" * 1000000,
             "version: 1\nfilesystem:\n  read: [" + "/a, " * 200000 + "]\n",
             "version: 1\nenvironment: {set: {" + ", ".join(f"A{i}: b" for i in range(60000))
             + "}}\n", "\"" + "\\u0041" * 100000, "&a " * 100000, "!" * 500000, "%" * 500000,
             "--- " * 100000, "'" * 700001, "version: 1\n" + "k: v\n" * 100000]
    for text in texts:
        write(folder, text)
        ran = check(folder, "policy.yaml")
        assert ran.returncode in (0, 1), (text[:40], ran)
        assert len(ran.stdout) + len(ran.stderr) < 20000
        assert (ran.returncode == 0) == (text.startswith("version: 1\n#")), (text[:40], ran)
