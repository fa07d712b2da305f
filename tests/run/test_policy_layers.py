"""Policies that nobody names: managed ones, the user's own; who may widen what, and who may not."""
import os

import pytest

from boxed import IS_ROOT, place
from hosted import HOME, STORE, Hosted

__all__ = ["place"]


@pytest.fixture
def hosted(place):
    return Hosted(place)


def nothing_started(ran, place, status, *words):
    assert ran.returncode == status, ran
    for word in words:
        assert word in ran.stderr, (word, ran)
    assert not (place.work / "started").exists()


def test_managed_and_user_hold_without_being_named(place, hosted):
    hosted.manage("filesystem: {hide: [managed-secret]}\nlimits: {pids: 200}\n")
    hosted.keep("filesystem: {hide: [own-secret]}\nenvironment: {set: {OWN: mine}}\n")
    for name in ("managed-secret", "own-secret", "plain"):
        (place.work / name).write_text("x\n")
    ran = hosted.run("--", "sh", "-c", 'cat managed-secret own-secret plain; echo "[$OWN]"')
    assert ran.stdout == "x\n[mine]\n", ran
    # a variable of the caller's chooses neither home nor place
    ran = hosted.run("--", "sh", "-c", "cat own-secret plain", extra="export HOME=/nowhere "
                     "XDG_CONFIG_HOME=/nowhere XDG_CONFIG_DIRS=/nowhere")
    assert ran.stdout == "x\n", ran


def test_none_is_needed(place, hosted):
    assert hosted.run("--", "true").returncode == 0
    hosted.managed.mkdir(parents=True)
    hosted.store.mkdir(parents=True)
    assert hosted.run("--", "true").returncode == 0


@pytest.mark.parametrize("key, more, less", [
    ("workspace", "direct", "staged"), ("approval", "on-request", "never"),
    ("tty.allowed", "true", "false"), ("tasks.live", "true", "false"),
    ("kernel.ptrace", "true", "false"), ("limits.pids", "512", "64"),
    ("limits.timeout", "2h", "1h"), ("tasks.idle", "2h", "1h"), ("trace.record", "false", "true"),
    ("filesystem.hide-strict", "false", "true"), ("network.capture", "ports", "all"),
])
def test_of_a_single_value_the_one_that_allows_less_counts(place, hosted, key, more, less):
    def say(value):
        section, _, name = key.partition(".")
        return f"{section}: {{{name}: {value}}}\n" if name else f"{section}: {value}\n"

    for managed, own in ((more, less), (less, more)):
        path = hosted.manage(say(managed))
        own_path = hosted.keep(say(own))
        ran = hosted.bawn("policy show", "--effective")
        assert ran.returncode == 0, ran
        winner = f"{path}:2, managed" if managed == less else f"{own_path}:2, user"
        assert f'says     {key}: {less}  ["{key}" {winner}]\n' in ran.stdout, ran.stdout
        assert f"{key}: {more}" not in ran.stdout


def test_show_effective_names_layer_and_line(place, hosted):
    path = hosted.manage("preset: ci\nfilesystem: {hide: [a]}\n")
    own = hosted.keep("filesystem:\n  hide:\n    - b\n")
    named = hosted.write(place.base / "policies" / "named.yaml", "limits: {pids: 77}\n")
    ran = hosted.bawn("policy show", "--effective", named)
    for line in ("layer    managed       preset ci", f"layer    managed       {path}",
                 f"layer    user          {own}", f"layer    command line  {named}",
                 f'hide     {place.work}/a  ["filesystem.hide" {path}:3, managed]',
                 f'hide     {place.work}/b  ["filesystem.hide" {own}:4, user]',
                 f'limit    processes: 77  ["limits.pids" {named}:2, command line]',
                 'says     tty.allowed: false  ["tty.allowed" preset ci:13, managed]'):
        assert line + "\n" in ran.stdout, (line, ran)
    # one hash names all of it; the host is the same one within one namespace
    ran = hosted.bawn("policy show", "--effective", named, extra=f"""
        show() {{ "$@" | head -n 1; }}
        show "$@"; show "$@"; printf 'version: 1\\nfilesystem: {{hide: [c]}}\\n' > {own}
        show "$@"; exit""")
    first, again, other = ran.stdout.splitlines()
    assert first == again != other, ran


LOCKED = [
    # locked, the managed statement, what the user says, the flag, what stands in its way
    ("workspace", "workspace: staged", "workspace: direct", None),
    ("filesystem.read", "", "filesystem: {read: [/opt]}", ["--read", "/opt"]),
    ("filesystem", "", "filesystem: {write: [/var/tmp/x]}", ["--write", "/opt"]),
    ("devices", "", "devices: [/dev/kvm]", ["--devices", "/dev/kvm"]),
    ("environment.set", "", "environment: {set: {A: b}}", ["--env", "A=b"]),
    ("environment", "", "environment: {pass: [SHLVL]}", ["--env", "SHLVL"]),
    ("limits.pids", "limits: {pids: 64}", "limits: {pids: 65}", None),
    ("limits", "", "limits: {pids: 1025}", ["--pids", "1025"]),
    ("limits", "", "limits: {output-cap: 100G}", ["--output-cap", "100G"]),
    ("network", "network: {capture: all}", "network: {capture: ports}", None),
    ("kernel", "", "kernel: {ptrace: true}", ["--allow-ptrace"]),
    ("kernel.nested-userns", "", "kernel: {nested-userns: true}", ["--nested-userns"]),
    ("trace", "", "trace: {record: false}", ["--no-trace"]),
    ("tty", "tty: {allowed: false}", "tty: {allowed: true}", None),
    ("tasks", "tasks: {idle: 10m}", "tasks: {idle: 11m}", None),
    ("filesystem.hide", "", None, ["--show-secrets"]),
    ("network", "", "network: {allow: [{host: example.org}]}", None),
]


@pytest.mark.parametrize("lock, says, widens, flag", LOCKED)
def test_nobody_widens_what_is_locked(place, hosted, lock, says, widens, flag):
    path = hosted.manage(f"lock: [{lock}]\n{says}\n")
    if widens:
        own = hosted.keep(widens + "\n")
        nothing_started(hosted.run("--", "touch", "started"), place, 125,
                        f'{own}:2:', "allows more", f"locked by {path}:2")
        (hosted.store / "policy.yaml").unlink()
        named = hosted.write(place.base / "policies" / "named.yaml", widens + "\n")
        nothing_started(hosted.run("--policy", named, "--", "touch", "started"), place, 125,
                        f'{named}:2:', f"locked by {path}:2")
    if flag:
        nothing_started(hosted.run(*flag, "--", "touch", "started"), place, 126, flag[0],
                        f"{path}:2:", "is locked", "policy.flag")
    assert hosted.run("--", "true").returncode == 0


def test_what_is_locked_may_be_narrowed(place, hosted):
    hosted.manage("lock: [workspace, filesystem, limits, kernel, environment]\n"
                  "workspace: staged\nfilesystem: {read: [/opt]}\nlimits: {pids: 200}\n"
                  "environment: {set: {A: b}}\n")
    hosted.keep("workspace: read-only\nlimits: {pids: 100, timeout: 5m}\n"
                "filesystem: {hide: [x], protect: [y], read: [/opt]}\nkernel: {ptrace: false}\n"
                "environment: {set: {A: b}}\n")
    (place.work / "y").write_text("y")
    ran = hosted.run("--pids", "50", "--hide", "z", "--timeout", "4m", "--", "true")
    assert ran.returncode == 0, ran


def test_a_lock_binds_the_layers_behind_it(place, hosted):
    """The user's own locks hold for projects and named policies, not for managed ones."""
    own = hosted.keep("lock: [devices, kernel]\n")
    hosted.manage("devices: [/dev/kvm]\n")
    assert hosted.bawn("policy show", "--effective").returncode in (0, 125)
    (hosted.managed / "10-site.yaml").unlink()
    named = hosted.write(place.base / "policies" / "n.yaml", "kernel: {ptrace: true}\n")
    nothing_started(hosted.run("--policy", named, "--", "touch", "started"), place, 125,
                    f"{named}:2:", f"locked by {own}:2")


def test_a_broken_managed_policy_starts_nothing(place, hosted):
    path = hosted.manage("worspace: staged\n", "50-typo.yaml")
    for verb in ("run", "explain", "plan", "verify", "task start"):
        ran = hosted.bawn(verb, *(["--", "touch", "started"] if verb == "run" else []))
        assert ran.returncode != 0 and f"{path}:2:1: unknown key" in ran.stderr, ran
        assert "without which nothing starts" in ran.stderr, ran
    nothing_started(hosted.run("--", "touch", "started"), place, 125)


@pytest.mark.parametrize("extra, words", [
    ("chmod o+w /etc/bawn/policy.d/10-site.yaml", "written by others"),
    ("chmod o+w /etc/bawn/policy.d", "written by others"),
    ("chmod o+w /etc/bawn", "written by others"),
    ("mv /etc/bawn/policy.d/10-site.yaml /etc/bawn/x; "
     "ln -s ../x /etc/bawn/policy.d/10-site.yaml", "is a link"),
    ("mv /etc/bawn /etc/elsewhere; ln -s elsewhere /etc/bawn", "cannot be read"),
    ("rm /etc/bawn/policy.d/10-site.yaml; mkfifo /etc/bawn/policy.d/10-site.yaml",
     "no regular file"),
    ("rm /etc/bawn/policy.d/10-site.yaml; mkdir /etc/bawn/policy.d/10-site.yaml",
     "no regular file"),
    ("rm -r /etc/bawn/policy.d; touch /etc/bawn/policy.d", "cannot be read"),
    ("mv /etc/bawn/policy.d/10-site.yaml /etc/bawn/policy.d/10-site.yml", "end in .yaml"),
    ("truncate -s 100M /etc/bawn/policy.d/10-site.yaml", "larger than"),
    ("for i in $(seq 70); do cp /etc/bawn/policy.d/10-site.yaml /etc/bawn/policy.d/$i.yaml; done",
     "more than 64"),
    ("cp /etc/bawn/policy.d/10-site.yaml /etc/bawn/policy.d/20.yaml; "
     "printf 'version: 1\\nlimits: {pids: 9999}\\n' > /etc/bawn/policy.d/20.yaml", "locked by"),
    pytest.param("chown 65534 /etc/bawn/policy.d/10-site.yaml", "not to root",
                 marks=pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")),
    pytest.param("chown 65534 /etc/bawn/policy.d", "not to root",
                 marks=pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")),
    pytest.param("chgrp 65534 /etc/bawn/policy.d/10-site.yaml; chmod g+w "
                 "/etc/bawn/policy.d/10-site.yaml", "written by others",
                 marks=pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")),
])
def test_managed_policies_that_others_could_have_made(place, hosted, extra, words):
    hosted.manage("lock: [limits]\nlimits: {pids: 200}\n")
    nothing_started(hosted.run("--", "touch", "started", extra=extra), place, 125, words,
                    "/etc/bawn")


def test_what_is_no_policy_in_the_directory_is_left(place, hosted):
    hosted.manage("limits: {pids: 200}\n")
    for name in ("README", ".hidden.yaml", "10-site.yaml.dpkg-new", "10-site.yaml~"):
        (hosted.managed / name).write_text("not: [a policy\n")
    assert hosted.run("--", "true").returncode == 0


@pytest.mark.parametrize("mode, words", [(0o646, "everybody"), (0o666, "everybody")])
def test_a_store_that_others_could_have_made(place, hosted, mode, words):
    path = hosted.keep("limits: {pids: 200}\n")
    (hosted.store / "policy.yaml").chmod(mode)
    nothing_started(hosted.run("--", "touch", "started"), place, 125, words, path)
    (hosted.store / "policy.yaml").chmod(0o600)
    hosted.store.chmod(0o777)
    nothing_started(hosted.run("--", "touch", "started"), place, 125, "everybody can write")


def test_a_task_makes_no_policy_for_the_next(place, hosted):
    """Attack: what a later start reads lies in what the task can write, there or not yet."""
    config = HOME + "/.config"
    (hosted.home / ".config").mkdir(mode=0o700)
    script = f"mkdir -p {config}/bawn; echo 'version: 1' > {config}/bawn/policy.yaml"
    ran = hosted.run("--write", config, "--", "sh", "-c", script)
    assert ran.returncode == 125 and "later starts would read" in ran.stderr, ran
    assert not hosted.store.exists()
    hosted.store.mkdir()
    for options in (["--write", STORE], ["--workspace", STORE],
                    ["--workspace", STORE, "--stage"]):
        ran = hosted.run(*options, "--", "sh", "-c", script)
        assert ran.returncode == 125 and "later starts would read" in ran.stderr, ran
    assert hosted.run("--read", config, "--", "true").returncode == 0
    assert hosted.run("--workspace", STORE, "--read-only", "--", "true").returncode == 0


def test_a_store_that_is_reached_by_links(place, hosted):
    """Dotfiles: the real place is judged, and a link to nowhere is not."""
    dots = place.base / "dots"
    dots.mkdir(mode=0o700)
    hosted.home.joinpath(".config").symlink_to(dots)
    assert hosted.run("--", "true").returncode == 0
    ran = hosted.run("--workspace", dots, "--", "true")
    assert ran.returncode == 125 and "later starts would read" in ran.stderr, ran
    (dots / "bawn").symlink_to("later")
    ran = hosted.run("--", "true")
    assert ran.returncode == 125 and "the user's policies" in ran.stderr, ran
    (dots / "later").mkdir(mode=0o700)
    (dots / "later" / "policy.yaml").write_text("version: 1\nenvironment: {set: {A: linked}}\n")
    ran = hosted.run("--", "sh", "-c", "echo $A")
    assert ran.stdout == "linked\n", ran
    # a file that is a link into the workspace is one that a task could have written
    (place.work / "mine.yaml").write_text("version: 1\n")
    (dots / "later" / "policy.yaml").unlink()
    (dots / "later" / "policy.yaml").symlink_to(place.work / "mine.yaml")
    nothing_started(hosted.run("--", "touch", "started"), place, 125, "lies in the workspace")


def test_links_on_the_way_that_a_task_could_have_made(place, hosted):
    """Attack: the file is the user's own and the link to it lies in what the task can write."""
    kept = hosted.write(place.base / "kept" / "weak.yaml", "environment: {set: {A: weak}}\n")
    hosted.store.mkdir(parents=True)
    (place.work / "way").symlink_to(kept)
    (hosted.store / "policy.yaml").symlink_to(place.work / "way")
    nothing_started(hosted.run("--", "touch", "started"), place, 125, "reached by the link",
                    str(place.work / "way"))
    (hosted.store / "policy.yaml").unlink()
    # the same of a named file, of a directory on the way, and of a place that a flag shows
    (place.work / "folder").symlink_to(kept.parent)
    (place.base / "first").symlink_to("work/folder/../kept/weak.yaml")
    (place.base / "second").symlink_to(place.work / "folder")
    for name in (place.work / "way", place.base / "first", place.base / "second" / "weak.yaml",
                 place.work / "folder" / "weak.yaml", "way"):
        nothing_started(hosted.run("--policy", name, "--", "touch", "started"), place, 125,
                        "reached by the link")
    shown = place.base / "shown"
    shown.mkdir(mode=0o700)
    (shown / "way").symlink_to(kept)
    (place.base / "third").symlink_to(shown / "way")
    assert hosted.run("--policy", place.base / "third", "--", "true").returncode == 0
    nothing_started(hosted.run("--policy", place.base / "third", "--write", shown, "--", "touch",
                               "started"), place, 125, "reached by the link")
    # and of the store: its links are as good as its files
    config = hosted.home / ".config"
    (config / "bawn").rmdir()
    config.rmdir()
    (shown / "config").mkdir(mode=0o700)
    (shown / "dots").symlink_to("config")
    config.symlink_to(shown / "dots")
    assert hosted.run("--", "true").returncode == 0
    ran = hosted.run("--write", shown, "--", "true")
    assert ran.returncode == 125 and "later starts would read" in ran.stderr, ran


def test_directories_above_that_others_could_change(place, hosted):
    """Attack: who can rename a directory further up puts another one there."""
    folder = place.base / "open" / "closed"
    kept = hosted.write(folder / "p.yaml", "limits: {pids: 200}\n")
    assert hosted.run("--policy", kept, "--", "true").returncode == 0
    folder.parent.chmod(0o777)
    nothing_started(hosted.run("--policy", kept, "--", "touch", "started"), place, 125,
                    "everybody can write")
    (place.base / "way").symlink_to(folder.parent / "link")
    (folder.parent / "link").symlink_to(place.base / "p.yaml")
    hosted.write(place.base / "p.yaml", "limits: {pids: 200}\n")
    nothing_started(hosted.run("--policy", place.base / "way", "--", "touch", "started"), place,
                    125, "everybody can write")
    # where nobody can rename what is another's it is the link's owner that counts
    folder.parent.chmod(0o1777)
    assert hosted.run("--policy", place.base / "way", "--", "true").returncode == 0
    if IS_ROOT:
        os.lchown(folder.parent / "link", 65534, 65534)
        nothing_started(hosted.run("--policy", place.base / "way", "--", "touch", "started"),
                        place, 125, "link of another user")


def test_managed_policies_are_not_believed_from_the_users_state(place, hosted):
    """Attack: what a start kept of a managed policy is changed by whom it binds."""
    path = hosted.manage("preset: ci\nlimits: {pids: 200}\ntty: {allowed: false}\n")
    # the same text as the user's own, so that a kept form of it is in the user's state
    own = hosted.write(place.base / "policies" / "own.yaml",
                       "preset: ci\nlimits: {pids: 200}\ntty: {allowed: false}\n")
    other = hosted.write(place.base / "policies" / "other.yaml", "name: weak\n")
    (hosted.managed / "10-site.yaml").rename(place.base / "aside")
    assert hosted.run("--policy", own, "--", "true").returncode == 0
    kept = place.state / "documents"
    strong = {name.name for name in kept.iterdir()}
    assert strong, "nothing is kept: the attack has nothing to change"
    assert hosted.run("--policy", other, "--", "true").returncode == 0
    weak, = (name for name in kept.iterdir() if name.name not in strong)
    for name in strong:
        (kept / name).write_bytes(weak.read_bytes())
    # the attack works on the user's own policy, which is the user's word anyway
    ran = hosted.bawn("policy show", "--effective", own)
    assert "limits.pids: 200" not in ran.stdout, ran
    (place.base / "aside").rename(hosted.managed / "10-site.yaml")
    ran = hosted.bawn("policy show", "--effective")
    assert f'limits.pids: 200  ["limits.pids" {path}:3, managed]' in ran.stdout, ran
    assert "preset ci:" in ran.stdout, ran


@pytest.mark.skipif(not IS_ROOT, reason="root alone keeps what managed policies say")
def test_what_root_keeps_of_managed_policies(place, hosted):
    """What root keeps is believed, being root's word; what another could have put there is not."""
    hosted.manage("limits: {pids: 200}\n")
    weak = hosted.write(place.base / "policies" / "weak.yaml", "name: weak\n")
    os.chmod(place.base, 0o755)
    for path in (place.work, place.state):
        os.chown(path, 65533, 65533)
    for name in ("roots-work", "roots-state"):
        (place.base / name).mkdir(mode=0o700)
    keep = (f'cd "{place.base}/roots-work"; "$1" policy show --effective --state-dir '
            f'"{place.base}/roots-state" "{weak}" >/dev/null; cd /var/cache/bawn/documents; ')
    show = f'cd "{place.work}"; exec setpriv --reuid 65533 --regid 65533 --clear-groups -- "$@"'
    forge = f'for f in *; do cat "{place.base}"/roots-state/documents/* > "$f"; done; '
    for change, is_believed in (
            ("", False), (forge, True), (forge + "chown 65533 *; ", False),
            (forge + "chmod o+w *; ", False), (forge + "chmod o+w .; ", False),
            (forge + "chown 65533 .; ", False), (forge + "chown 65533 ..; ", False),
            (forge + "chmod o+w ../..; ", False), ('for f in *; do printf x > "$f"; done; ', False),
            ('for f in *; do rm "$f"; mkfifo "$f"; done; ', False),
            ('for f in *; do ln -sf /dev/zero "$f"; done; ', False)):
        ran = hosted.bawn("policy show", "--effective", extra=keep + change + show)
        assert ("limits.pids: 200" in ran.stdout) != is_believed, (change, ran)
        assert ran.returncode == 0, (change, ran)
    ran = hosted.bawn("policy show", "--effective", extra=keep + "stat -c %a:%u . * >&2; " + show)
    assert ran.stderr.splitlines()[:2] == ["755:0", "644:0"], ran


def test_a_policy_that_changes_under_a_running_task(place, hosted):
    """What a task has is what there was at its start; the next one has what there is then."""
    path = hosted.keep("environment: {set: {A: before}}\n")
    script = (f"echo $A; printf x > began; while [ ! -e on ]; do sleep 0.02; done; echo $A")
    ran = hosted.run("--json", "--", "sh", "-c", "echo $A", extra="")
    assert "before" in ran.stdout
    ran = hosted.run("--", "sh", "-c", script,
                     extra=f"""(while [ ! -e began ]; do sleep 0.02; done
                               printf 'version: 1\\nenvironmet: {{}}\\n' > {path}; : > on) &""")
    assert ran.returncode == 0 and ran.stdout == "before\nbefore\n", ran
    nothing_started(hosted.run("--", "touch", "started"), place, 125, "unknown key")


def test_every_kind_of_statement_twice(place, hosted):
    """Layers that say the same are no fault."""
    data = place.base / "data"
    data.mkdir()
    (data / "x").write_text("seen\n")
    text = f"""\
filesystem: {{read: [{data}], hide: [h, "**/.env"], protect: [p]}}
environment: {{set: {{A: b}}, pass: [SHLVL]}}
network: {{deny: [{{host: example.org}}]}}
lock: [network]
"""
    (place.work / "p").write_text("p")
    hosted.manage(text)
    hosted.manage(text, "20-again.yaml")
    hosted.keep(text)
    ran = hosted.run("--", "cat", data / "x")
    assert ran.returncode == 0 and ran.stdout == "seen\n", ran


@pytest.mark.skipif(not IS_ROOT, reason="root is needed for an ordinary user under root")
def test_an_ordinary_user_under_managed_policies(place, hosted):
    path = hosted.manage("lock: [kernel]\nenvironment: {set: {SITE: yes-it-is}}\n")
    os.chmod(place.base, 0o755)
    os.chown(place.work, 65533, 65533)
    os.chown(place.state, 65533, 65533)
    prefix = ("exec setpriv --reuid 65533 --regid 65533 --clear-groups -- \"$@\"")
    ran = hosted.run("--", "sh", "-c", "echo $SITE", extra=prefix)
    assert ran.stdout == "yes-it-is\n", ran
    nothing_started(hosted.run("--allow-ptrace", "--", "touch", "started", extra=prefix), place,
                    126, f"{path}:2", "is locked")
    ran = hosted.run("--", "true", extra="chmod 0700 /etc/bawn/policy.d; " + prefix)
    nothing_started(ran, place, 125, "cannot be read")
