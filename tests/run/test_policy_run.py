"""Policy files and presets in force: what they say is so in the box, by its rule, or refused."""
import hashlib
import json
import os
import pwd
import struct
import subprocess
import time

import pytest

from boxed import BAWN, eventually, place, refused

__all__ = ["place"]


@pytest.fixture
def policy(place):
    """Writes a policy outside of the workspace and gives its path."""
    folder = place.base / "policies"
    folder.mkdir(mode=0o700)

    def write(text, name="policy.yaml"):
        path = folder / name
        path.write_text("version: 1\n" + text)
        path.chmod(0o600)
        return str(path)

    return write


def bawn(place, verb, *arguments, env=None):
    return subprocess.run([BAWN, *verb.split(), *place.options, *arguments], capture_output=True,
                          text=True, cwd=place.work, timeout=30, check=False,
                          env={**os.environ, **(env or {})})


def explained(place, *arguments, env=None):
    ran = bawn(place, "explain", "--json", *arguments, env=env)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


def test_what_it_shows_and_hides(place, policy):
    data = place.base / "data"
    data.mkdir()
    (data / "x").write_text("seen")
    (data / "hidden").write_text("unseen")
    scratch = place.base / "scratch"
    scratch.mkdir()
    (place.work / "sub").mkdir()
    (place.work / "sub" / ".env").write_text("TOKEN=x")
    (place.work / "Makefile").write_text("all:\n")
    path = policy(f"""\
filesystem:
  read: [{data}]
  write: [{scratch}]
  hide: ["**/.env", {data}/hidden]
  protect: [Makefile]
environment:
  pass: [PASSED, ABSENT]
  set: {{SET: "a b", EMPTY: ""}}
""")
    script = f"""
        cat {data}/x; touch {data}/new 2>/dev/null && echo wrote; echo kept > {scratch}/kept
        cat {data}/hidden sub/.env 2>/dev/null; echo x 2>/dev/null >> Makefile
        echo "[$PASSED][$SET][${{EMPTY-unset}}][${{ABSENT-unset}}][${{OTHER-unset}}]"
    """
    ran = place.sh(script, "--policy", path,
                   env={**os.environ, "PASSED": "p", "OTHER": "o"})
    assert ran.out == "seen[p][a b][][unset][unset]\n", ran
    assert (scratch / "kept").read_text() == "kept\n"
    assert (place.work / "Makefile").read_text() == "all:\n"
    place.assert_nothing_left()


def test_a_glob_of_a_policy_is_for_what_there_is(place, policy):
    """A policy is for many workspaces: its glob may match nothing in one, a name must be there."""
    path = policy('filesystem: {protect: ["**/Makefile"]}\n')
    assert place.run("--policy", path, "--", "true").status == 0
    (place.work / "Makefile").write_text("all:\n")
    assert place.sh("echo x >> Makefile", "--policy", path).status != 0
    path = policy("filesystem: {protect: [missing]}\n")
    refused(place.run("--policy", path, "--", "touch", "started"), place, 125, f"{path}:2",
            "missing")


def test_explain_names_file_and_line(place, policy):
    data = place.base / "data"
    data.mkdir()
    path = policy(f"""\
preset: ci
filesystem:
  read:
    - path: {data}
      id: my-data
  hide:
    - one
    - two
limits:
  memory: 512M
environment:
  set: {{A: b}}
""")
    found = explained(place, "--policy", path)
    rules = {item: line["rule"] for question in ("read", "identity") for line in found[question]
             for item in line["items"]}
    work = str(place.work)
    assert rules[str(data)] == {"id": "my-data", "file": path, "line": 5}
    assert rules[f"{work}/one"] == {"id": "filesystem.hide", "file": path, "line": 8}
    assert rules[f"{work}/two"]["line"] == 9
    assert rules["A"] == {"id": "environment.set", "file": path, "line": 13}
    assert rules["CI"]["file"] == "preset ci"
    limits = {line["limit"]["limit"]: line["rule"] for line in found["resources"]
              if line.get("limit")}
    assert limits["memory"] == {"id": "limits.memory", "file": path, "line": 11}
    assert limits["wall clock"]["file"] == "preset ci"
    assert limits["cpu time"]["file"] is None


def test_limits_hold(place, policy):
    ran = place.run("--json", "--policy", policy("limits: {timeout: 300ms}\n"), "--", "sleep", "60")
    assert ran.status == 124, ran
    ran = place.run("--json", "--policy", policy("limits: {output-cap: 1000}\n"), "--", "sh", "-c",
                    "exec cat /dev/zero")
    assert ran.status > 128 and ran.result["cause"] == "limit", ran


@pytest.mark.parametrize("text, options", [
    ("limits: {memory: 512M}", ["--memory", "513M"]),
    ("limits: {timeout: 5m}", ["--timeout", "301s"]),
    ("limits: {pids: 64}", ["--pids", "65"]),
    ("kernel: {nested-userns: false}", ["--nested-userns"]),
    ("kernel: {ptrace: false}", ["--allow-ptrace"]),
    ("tty: {allowed: false}", ["--tty"]),
    ("trace: {record: true}", ["--no-trace"]),
])
def test_a_flag_widens_nothing_that_a_policy_forbids(place, policy, text, options):
    path = policy(text + "\n")
    refused(place.run("--policy", path, *options, "--", "touch", "started"), place, 126,
            options[0], f"{path}:2", "policy.flag")
    ran = bawn(place, "explain", "--policy", path, *options)
    assert ran.returncode == 1, ran


def test_a_flag_narrows_and_adds(place, policy):
    data = place.base / "data"
    data.mkdir()
    (data / "x").write_text("seen\n")
    path = policy(f"limits: {{timeout: 5m}}\nfilesystem: {{hide: [{data}/y]}}\n")
    (data / "y").write_text("unseen\n")
    ran = place.sh(f"cat {data}/x {data}/y; cat own; sleep 60", "--policy", path,
                   "--timeout", "500ms", "--read", data, "--hide", "own")
    assert ran.status == 124 and ran.out == "seen\n", ran


def test_what_is_hidden_stays_hidden_from_a_flag(place, policy):
    data = place.base / "data"
    data.mkdir()
    (data / "x").write_text("unseen\n")
    path = policy(f"filesystem: {{hide: [{data}]}}\n")
    ran = place.sh(f"cat {data}/x", "--policy", path, "--read", data / "x")
    assert "unseen" not in ran.out, ran


@pytest.mark.parametrize("text, words", [
    ("confinement: unrestricted", "running without the wall"),
    ("network: {allow: [{host: example.org, methods: [GET]}]}", "inspection of TLS"),
    ("network: {allow: [{host: example.org, inspect: true}]}", "inspection of TLS"),
    ("network: {allow: [{host: example.org, protocol: udp}]}", "UDP"),
    ("packages: {mirrors: ['https://example.org/']}", "package mirrors"),
    ("credentials: [{name: a, host: example.org}]", "a broker of credentials"),
    ("isolation: {floor: microvm}", "the microvm tier"),
    ("trace: {record-reads: true}", "a record of the files that were read"),
])
def test_what_is_not_built_is_refused_and_named(place, policy, text, words):
    path = policy(text + "\n")
    ran = place.run("--policy", path, "--", "touch", "started")
    refused(ran, place, 125, words, f"{path}:2:")
    assert bawn(place, "explain", "--policy", path).returncode == 125


def test_what_denies_more_than_there_is_needs_nothing(place, policy):
    path = policy("network: {deny: [{host: example.org}]}\nexec: {strict: false}\n"
                  "isolation: {floor: os}\napproval: on-request\nworkspace: direct\n")
    assert place.run("--policy", path, "--", "true").status == 0


def test_a_broken_file_starts_nothing(place, policy):
    path = policy("worspace: direct\nfilesytem: {}\n")
    for verb in ("explain", "plan", "verify", "task start"):
        ran = bawn(place, verb, "--policy", path)
        assert ran.returncode != 0 and f'{path}:2:1: unknown key "worspace"' in ran.stderr, ran
    refused(place.run("--policy", path, "--", "touch", "started"), place, 125, f"{path}:2:1",
            "workspace", "and more")


def test_a_file_that_the_task_could_have_written(place, policy):
    good = policy("")
    inside = place.work / "policy.yaml"
    inside.write_text("version: 1\n")
    link = place.work / "link.yaml"
    link.symlink_to(good)
    for path in (inside, link, "policy.yaml"):
        refused(place.run("--policy", path, "--", "touch", "started"), place, 125,
                "lies in the workspace")
    shown = place.base / "shown"
    shown.mkdir()
    (shown / "p.yaml").write_text("version: 1\n")
    refused(place.run("--policy", shown / "p.yaml", "--write", shown, "--", "touch", "started"),
            place, 125, "where a task could have written it")
    assert place.run("--policy", shown / "p.yaml", "--read", shown, "--", "true").status == 0


def test_paths_that_would_undo_the_wall(place, policy):
    """The loader knows them by name; what a link makes of them is seen at the start."""
    link = place.base / "link"
    link.symlink_to("/etc")
    path = policy(f"filesystem: {{write: [{link}]}}\n")
    refused(place.run("--policy", path, "--", "touch", "started"), place, 126, "settings")
    trick = place.work / "trick"
    trick.symlink_to("/var/log")
    path = policy(f"filesystem: {{read: [{trick}]}}\n")
    refused(place.run("--policy", path, "--", "touch", "started"), place, 126,
            "a link in the workspace leads there")
    path = policy("filesystem: {read: [/nowhere/at/all]}\n")
    refused(place.run("--policy", path, "--", "touch", "started"), place, 125, f"{path}:2:21",
            "/nowhere/at/all")


def test_a_workspace_that_is_not_written_in_place(place, policy):
    (place.work / "kept").write_text("before")
    presets = {"read-only": ["--preset", "review"], "staged": ["--preset", "quarantine"]}
    for text in ("read-only", "staged", "ephemeral"):
        path = policy(f"workspace: {text}\n")
        for options in filter(None, (["--policy", path], presets.get(text))):
            ran = place.sh("cat kept; echo; echo after > kept && cat kept", *options)
            assert ran.out.splitlines()[0] == "before", ran
            assert ("after" in ran.out) == (text != "read-only"), ran
            assert (place.work / "kept").read_text() == "before"
    path = policy("workspace: read-only\n")
    found = explained(place, "--policy", path)
    assert any(line["rule"] == {"id": "workspace", "file": path, "line": 2}
               for line in found["read"]), found["read"]
    for option in ("--stage", "--ephemeral"):
        refused(place.run("--policy", path, option, "--", "touch", "started"), place, 126,
                option, f"{path}:2")
    path = policy("workspace: ephemeral\n")
    refused(place.run("--policy", path, "--stage", "--", "touch", "started"), place, 126,
            "--stage", "is ephemeral", f"{path}:2")
    ran = place.sh("echo x > kept", "--policy", path, "--json")
    assert ran.result["ephemeral"] and (place.work / "kept").read_text() == "before", ran
    # less is always possible
    path = policy("workspace: staged\n")
    assert place.sh("echo x > kept", "--policy", path, "--read-only").status != 0
    ran = place.sh("echo x > kept", "--policy", path, "--ephemeral", "--json")
    assert ran.result["ephemeral"] and "stage" not in ran.result, ran


@pytest.mark.parametrize("preset", ["review", "quarantine"])
def test_what_is_said_of_a_preset_is_so(place, preset):
    ran = bawn(place, "verify", "--quick", "--preset", preset)
    assert ran.returncode == 0 and ", 0 failed" in ran.stdout, ran


def test_presets(place):
    assert place.run("--preset", "develop", "--", "true").status == 0
    ran = place.sh("echo $CI", "--preset", "ci")
    assert ran.out == "true\n", ran
    refused(place.run("--preset", "browse", "--", "touch", "started"), place, 125,
            "preset browse:", "this build lacks")
    refused(place.run("--preset", "develo", "--", "touch", "started"), place, 125, '"develop"')


def test_develop_is_what_runs_without_a_policy(place):
    def policy_of(*options):
        ran = place.run("--json", "--no-spool", *options, "--", "true")
        return ran.result["policy"]

    assert policy_of() == policy_of("--preset", "develop")
    assert policy_of() != policy_of("--preset", "ci")


def test_live_tasks(place, policy):
    ran = bawn(place, "task start", "--preset", "ci")
    assert ran.returncode == 126 and "tasks.live is false" in ran.stderr, ran
    path = policy("tasks: {live: true, lifetime: 1s}\ntty: {allowed: false}\n")
    ran = bawn(place, "task start", "--policy", path, "--lifetime", "1h")
    assert ran.returncode == 0, ran
    # the policy's lifetime is the shorter one
    assert eventually(lambda: not os.listdir(place.state / "tasks"))
    place.assert_nothing_left()


def test_trace_can_be_off_by_policy(place, policy):
    path = policy("trace: {record: false}\n")
    assert place.run("--policy", path, "--", "true").status == 0
    ran = bawn(place, "trace ls")
    assert "true" not in ran.stdout, ran


def kept_of(place):
    """Name and inode of what is kept of policies."""
    return {name.name: name.stat().st_ino for name in (place.state / "documents").iterdir()}


def settle(path):
    """Until the file's change time is one that tells it from what comes after it."""
    assert eventually(lambda: time.time() > os.stat(path).st_ctime + 5, seconds=20)


def test_the_second_start_asks_no_role(place, policy):
    """What a text says is kept: a start with a known policy costs no process."""
    path = policy("limits: {timeout: 5m}\n")
    assert place.run("--policy", path, "--", "true").status == 0
    kept = list((place.state / "documents").iterdir())
    assert len(kept) == 1
    # what is kept and broken is made again, not believed
    good = kept[0].read_bytes()
    kept[0].write_bytes(good[:-1] + b"x")
    assert place.run("--policy", path, "--", "true").status == 0
    assert kept[0].read_bytes() == good
    for number in range(200):
        path = policy(f"limits: {{timeout: {number + 1}m}}\n")
        assert bawn(place, "explain", "--policy", path).returncode == 0
    assert len(kept_of(place)) <= 193


def test_a_file_that_did_not_change_is_not_read_again(place, policy):
    path = policy("limits: {pids: 201}\n")
    show = lambda: bawn(place, "policy show", "--effective", path).stdout
    settle(path)
    assert "limits.pids: 201" in show()
    kept = kept_of(place)
    # one of the text, one of the file as it stands there
    assert len(kept) == 2 and len(set(kept.values())) == 1, kept
    text, = (name for name in kept if not was_named_by_state(place, name, path))
    (place.state / "documents" / text).unlink()
    assert "limits.pids: 201" in show() and len(kept_of(place)) == 1, "the text was read again"
    state, = kept_of(place)
    # what is broken is not believed: the text is read, and both are made anew
    (place.state / "documents" / state).write_bytes(b"x")
    assert "limits.pids: 201" in show() and len(kept_of(place)) == 2
    assert (place.state / "documents" / state).stat().st_size > 1


def test_a_file_that_changed_is_read_again(place, policy):
    """Attack on what is kept: as large as before, in the same inode, its times set back."""
    path = policy("limits: {pids: 201}\n")
    show = lambda: bawn(place, "policy show", "--effective", path).stdout
    settle(path)
    assert "limits.pids: 201" in show() and len(kept_of(place)) == 2
    before = os.stat(path)
    for value in (202, 203):
        with open(path, "r+", encoding="ascii") as file:
            file.write(f"version: 1\nlimits: {{pids: {value}}}\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = os.stat(path)
        assert (after.st_ino, after.st_size, after.st_mtime_ns) == \
            (before.st_ino, before.st_size, before.st_mtime_ns)
        # at once, and when what it says now is kept as well
        assert f"limits.pids: {value}" in show()
    settle(path)
    assert "limits.pids: 203" in show() and "limits.pids: 203" in show()
    # another file of the same size and times
    os.rename(path, path + ".old")
    policy("limits: {pids: 204}\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "limits.pids: 204" in show()


def test_what_is_kept_is_hostile(place, policy):
    """Attack: other bytes, and other things than files, under both names of what is kept."""
    path = policy("limits: {pids: 201}\n")
    folder = place.state / "documents"
    show = lambda: bawn(place, "policy show", "--effective", path)
    settle(path)
    assert "limits.pids: 201" in show().stdout
    names = list(kept_of(place))
    good = (folder / names[0]).read_bytes()
    assert len(names) == 2 and len(good) > 100
    huge = good[:8] + b"\xff" * 16 + good[24:]
    swapped = bytearray(good)
    swapped[24:] = good[:23:-1]

    def plant(kind, at):
        if kind == "fifo":
            os.mkfifo(at)
        elif kind == "folder":
            at.mkdir()
        elif kind == "endless":
            at.symlink_to("/dev/zero")
        elif kind == "sparse":
            with open(at, "wb") as file:
                file.write(good[:24])
                file.truncate(1 << 30)
        else:
            at.write_bytes(kind)
            if kind == good:
                at.chmod(0o666)

    for kind in ("fifo", "folder", "endless", "sparse", b"", good[:20], good[:-1], good + b"\0",
                 huge, bytes(swapped), b"\xff" * 5000, good):
        for name in names:
            subprocess.run(["rm", "-rf", folder / name], check=True)
            plant(kind, folder / name)
        begun = time.monotonic()
        ran = show()
        assert ran.returncode == 0 and "limits.pids: 201" in ran.stdout and not ran.stderr, \
            (kind, ran)
        assert time.monotonic() - begun < 10, kind
    # each byte another one: whatever is made of it, nothing dies of it
    for at in range(0, len(good), max(1, len(good) // 60)):
        for name in names:
            subprocess.run(["rm", "-rf", folder / name], check=True)
            (folder / name).write_bytes(good[:at] + bytes([good[at] ^ 0x81]) + good[at + 1:])
        assert show().returncode in (0, 1, 125), at


def test_homes_of_a_kept_file(place, policy):
    """What "~" stands for is the caller's: what is kept for one home is not believed in another."""
    path = policy("filesystem: {hide: [~/data]}\n")
    settle(path)
    ran = bawn(place, "policy show", "--effective", path)
    home = pwd.getpwuid(os.geteuid()).pw_dir
    assert f"filesystem.hide: {home}/data" in ran.stdout, ran
    state, = (name for name in kept_of(place) if was_named_by_state(place, name, path))
    digest = hashlib.sha256(state_of(path) + b"\0").hexdigest()
    assert state != digest and state == hashlib.sha256(
        state_of(path) + home.encode() + b"\0").hexdigest()


def state_of(path):
    """What the name of a kept file is made of, before the home (workspace/policy_file.c)."""
    status = os.stat(path)
    second = 10 ** 9
    return b"state\0" + struct.pack(
        "<8Q", 1, status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns // second,
        status.st_ctime_ns % second, status.st_mtime_ns // second, status.st_mtime_ns % second)


def was_named_by_state(place, name, path):
    home = pwd.getpwuid(os.geteuid()).pw_dir
    return name in (hashlib.sha256(state_of(path) + of.encode() + b"\0").hexdigest()
                    for of in ("", home))
