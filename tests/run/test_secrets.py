"""Files of the workspace that are named like secrets: hidden without being asked for, and git and
programs go on as if they were not there."""
import json
import os
import subprocess

import pytest

from boxed import BAWN, LIMIT_S, eventually, place, select_ready
from test_git_box import EXPORT, git, init

__all__ = ["place"]

SECRET = "TOKEN=hunter2\n"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n"


def put(path, text=SECRET):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def grep(place, *options, script=""):
    """What of the secrets a task can find in its workspace, by any name."""
    ran = place.sh(f"{script}grep -rlF hunter2 --exclude-dir=.git . 2>/dev/null; true", *options)
    assert ran.status == 0, ran
    return sorted(ran.out.split("\n")[:-1])


@pytest.fixture
def repository(place):
    """One with a remote-less history, a secret in no ignore file, and everyday files."""
    init(place.work)
    put(place.work / "f", "one\n")
    git(place.work, "add", ".")
    git(place.work, "commit", "-qm", "one")
    put(place.work / ".env")
    return place


def test_they_are_hidden_and_the_rest_is_not(place):
    for name in (".env", "app/web/.env.local", "id_ed25519", "conf/prod.env", "a.token"):
        put(place.work / name)
    for name in ("tls/server.key", "tls/server.pem", ".ssh/work"):
        put(place.work / name, KEY)
    put(place.work / ".npmrc", "//r/:_authToken=hunter2\n")
    put(place.work / "sub/.npmrc", "save-exact=true # hunter2\n")
    put(place.work / "sub/cert.pem", "-----BEGIN CERTIFICATE-----\nhunter2\n")
    put(place.work / ".env.example", SECRET)
    put(place.work / "node_modules/x/test/.env", SECRET)
    assert grep(place) == ["./.env.example", "./node_modules/x/test/.env", "./sub/.npmrc",
                           "./sub/cert.pem"]
    assert len(grep(place, "--show-secrets")) == 13
    place.assert_nothing_left()


@pytest.mark.parametrize("state", ["git", "plain"])
def test_programs_find_no_such_file(repository, state):
    """As if there were none; a copy of the tree works."""
    if state == "plain":
        subprocess.run(["rm", "-rf", repository.work / ".git"], check=True)
    ran = repository.sh(
        "python3 -c 'import os; print(os.path.exists(\".env\"), os.path.isfile(\".env\"))'; "
        "cp -r . /tmp/copy && tar -cf /tmp/x.tar . && cat /tmp/copy/f; cat .env")
    assert ran.status == 1 and ran.out == "False False\none\n", ran
    assert ran.err.startswith("cat: .env: No such file or directory\n"), ran


def test_a_denial_names_the_rule_and_the_way(repository):
    secret = str(repository.work / ".env")
    ran = repository.run("--json", "--", "cat", ".env")
    assert f"bawn: denied: fs.secret {secret} (built-in \"workspace.secret\"" in ran.err, ran
    assert f"to allow: --read {secret}" in ran.err, ran
    denial, = ran.result["denials"]
    assert (denial["code"], denial["rule"]["id"]) == ("fs.secret", "workspace.secret")
    assert repository.run("--", "cat", "f").err == "", "what nobody asked for is not told"


@pytest.mark.parametrize("option, out, kept", [
    ("--read", SECRET, True), ("--write", SECRET + "x\n", False)])
def test_one_is_shown_by_its_path(repository, option, out, kept):
    put(repository.work / "sub/.env")
    ran = repository.sh("echo x >> .env; cat .env; test ! -e sub/.env", option, ".env")
    assert (ran.status, ran.out) == (0, out), ran
    assert ((repository.work / ".env").read_text() == SECRET) == kept


def test_nothing_a_task_does_brings_it_out(repository):
    """Nor is the host's file changed or lost."""
    put(repository.work / "sub/deep/.env")
    tries = ["rm -f .env", "mv .env x", "ln .env x", "cp --remove-destination f .env",
             "echo x > .env", "chmod 777 .env", "mv sub other", "mv sub/deep sub/other",
             "rm -rf sub", "git clean -qfdx", "git stash -qu", "truncate -s 0 .env",
             "unshare -Urm sh -c 'umount .env; mount --bind . /mnt; cat /mnt/.env'",
             "unshare -Urm sh -c 'mount -t overlay o -o lowerdir=$PWD:/tmp /mnt; cat /mnt/.env'"]
    script = EXPORT + "".join(f"( {one} ) >/dev/null 2>&1; " for one in tries)
    for options in ([], ["--nested-userns"]):
        assert grep(repository, *options, script=script) == [], options
    assert (repository.work / ".env").read_text() == SECRET
    assert (repository.work / "sub/deep/.env").read_text() == SECRET


def test_git_goes_on_as_if_they_were_ignored(repository):
    """Nothing of the mask is ever added, whatever the ignore files say."""
    put(repository.work / "we ird/*.env")
    ran = repository.sh(EXPORT + "git status --porcelain && echo two > f && echo n > new && "
                        "git add -A && git commit -qm two && git status --porcelain && "
                        "git ls-files")
    assert (ran.status, ran.out) == (0, "f\nnew\n"), ran
    assert git(repository.work, "ls-files").stdout == "f\nnew\n"
    assert git(repository.work, "log", "--format=%s").stdout == "two\none\n"
    assert (repository.work / ".env").read_text() == SECRET


@pytest.mark.parametrize("options", [[], ["--object-format=sha256"]])
def test_what_git_has_is_shown(place, options):
    """Its history has it anyway; hidden, it would look deleted."""
    init(place.work, *options)
    put(place.work / ".env")
    put(place.work / "sub/dir/.env.production")
    git(place.work, "add", ".")
    git(place.work, "commit", "-qm", "one")
    ran = place.sh("git status --porcelain && cat .env sub/dir/.env.production")
    assert (ran.status, ran.out) == (0, SECRET * 2), ran
    told = subprocess.run([BAWN, "explain", *place.options], cwd=place.work, check=True,
                          capture_output=True, text=True, timeout=LIMIT_S).stdout
    assert "git has their content" in told and str(place.work / ".env") in told


def test_a_tracked_one_with_another_content_is_hidden_and_git_fails_loudly(place):
    init(place.work)
    put(place.work / ".env", "TOKEN=\n")
    git(place.work, "add", ".")
    git(place.work, "commit", "-qm", "one")
    put(place.work / ".env")
    ran = place.sh(EXPORT + "git status --porcelain; git commit -qam two")
    assert ran.status != 0 and " M .env" in ran.out and "D .env" not in ran.out, ran
    assert grep(place) == []
    assert (place.work / ".env").read_text() == SECRET
    assert git(place.work, "log", "--format=%s").stdout == "one\n"


def test_a_task_cannot_have_it_shown_by_tracking_it(repository):
    """It does not know the id of the content; any other does not count."""
    ran = repository.sh(EXPORT + "h=$(echo fake | git hash-object -w --stdin) && "
                        "git update-index --add --cacheinfo 100644,$h,.env && git commit -qm two")
    assert ran.status == 0, ran
    assert ".env" in git(repository.work, "ls-files").stdout
    assert grep(repository) == []


def test_a_task_cannot_have_it_shown_by_filling_the_tree(place):
    """What was found once is hidden by the next start, too."""
    put(place.work / "app/web/.env")
    assert grep(place) == []
    ran = place.sh("mkdir $(seq 4200); mkdir app/{a..z}{a..z}; mkdir m; cd m; touch $(seq 9000)")
    assert ran.status == 0, ran
    assert grep(place) == []
    told = subprocess.run([BAWN, "explain", *place.options], cwd=place.work, check=True,
                          capture_output=True, text=True, timeout=LIMIT_S).stdout
    assert "larger than a start looks through" in told


def test_odd_files_of_such_a_name(place):
    """Nothing waits for them, follows them or falls over them."""
    put(place.work / "real/config")
    os.symlink("real/config", place.work / ".env")
    os.symlink("/etc/passwd", place.work / ".netrc")
    os.symlink(".env.a", place.work / ".env.a")
    os.symlink("/nowhere", place.work / "a.token")
    os.mkfifo(place.work / "b.token")
    (place.work / "c.token").mkdir()
    put(place.work / "d.token", "")
    with open(place.work / "e.pem", "wb") as file:
        file.truncate(1 << 40)
    put(place.work / "line\nbreak.env")
    put(place.work / "x/y.env")
    os.link(place.work / "x/y.env", place.work / "twin")
    assert grep(place, script="rm -f e.pem; ") == ["./twin"], "another name of it is not looked for"
    assert place.sh("cat .netrc | head -c 4").out == "root", "the box's own"


def test_repositories_below(place):
    """One that bawn knows, and one deeper in the tree: neither takes a mask for a file."""
    init(place.work)
    for where in ("lib", "a/b/lib"):
        (place.work / where).mkdir(parents=True)
        init(place.work / where)
        put(place.work / where / "f", "f\n")
        put(place.work / where / ".env", "TOKEN=\n")
        git(place.work / where, "add", ".")
        git(place.work / where, "commit", "-qm", "one")
        put(place.work / where / ".env")
    assert grep(place) == []
    ran = place.sh(EXPORT + "for d in lib a/b/lib; do git -C $d commit -qam two; "
                   "git -C $d ls-files; done")
    assert ran.out == ".env\nf\n" * 2, ran
    for where in ("lib", "a/b/lib"):
        assert git(place.work / where, "log", "--format=%s").stdout == "one\n"
        assert (place.work / where / ".env").read_text() == SECRET


def test_the_host_replaces_one_while_a_task_runs(repository):
    """As an editor saves: it is covered again, and the task is told of nothing."""
    child = repository.start("--", "bash", "-c", "echo on; for i in $(seq 3000); do "
                             "test -e /tmp/end && break; sleep 0.01; "
                             "readlink .env >/dev/null || s=$((s+1)); done; read x < .env",
                             stdin=subprocess.DEVNULL)
    assert select_ready(child) == b"on\n"
    new = put(repository.work / "new", "TOKEN=hunter3\n")
    new.rename(repository.work / ".env")

    def seen_by_task():
        pid = next((int(pid) for pid in os.listdir("/proc") if pid.isdigit()
                    and b"for i in $(seq 3000)" in cmdline(pid)
                    and b"bawn" not in cmdline(pid).split(b"\0")[0]), None)
        return pid and os.path.islink(f"/proc/{pid}/root{repository.work}/.env")

    assert eventually(seen_by_task), "covered again"
    child.terminate()
    child.communicate(timeout=LIMIT_S)
    assert (repository.work / ".env").read_text() == "TOKEN=hunter3\n"


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_it_is_told_before_and_in_the_plan(repository):
    told = subprocess.run([BAWN, "explain", "--json", *repository.options], cwd=repository.work,
                          check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    assert str(repository.work / ".env") in told and "workspace.secret" in told
    plan = subprocess.run([BAWN, "plan", *repository.options], cwd=repository.work,
                          check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    assert any(" mask " in line and line.find("/.env") > 0 for line in plan.splitlines()), plan
    shown = subprocess.run([BAWN, "explain", "--show-secrets", *repository.options],
                           cwd=repository.work, check=True, capture_output=True, text=True,
                           timeout=LIMIT_S).stdout
    assert "/.env" not in shown and "not hidden: --show-secrets" in shown
    box = repository.run("--", "cat", "/run/bawn/policy.txt").out
    assert "(.env, private keys): hidden" in box and "/.env\n" not in box


def test_strict_hiding_is_about_what_was_asked_for(repository):
    assert repository.run("--hide-strict", "--", "true").status == 0
    assert repository.run("--hide-strict", "--hide", "f", "--", "true").status == 125


def test_verify_finds_it_closed(repository):
    ran = subprocess.run([BAWN, "verify", "--json", *repository.options], cwd=repository.work,
                         capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran
    assert str(repository.work / ".env") in json.dumps(json.loads(ran.stdout))


@pytest.mark.parametrize("option", ["--stage", "--read-only"])
def test_in_a_workspace_that_is_not_written_in_place_the_name_is_absent(repository, option):
    put(repository.work / "sub/.env")
    ran = repository.sh("ls -A . sub; git status --porcelain; cat .env", option)
    assert ran.status == 1 and ran.out == ".:\n.git\nf\nsub\n\nsub:\n", ran
    assert "fs.secret" in ran.err and grep(repository, option) == []


READ_ALL = "find . -name .env -exec cat {} + 2>/dev/null; echo end"


@pytest.mark.parametrize("option", [(), ("--stage",), ("--ephemeral",), ("--read-only",)])
def test_in_many_directories(place, option):
    """A workspace of many packages, each with its own: none of them is seen."""
    for package in range(300):
        folder = place.work / f"packages{package % 3}/p{package}/app"
        folder.mkdir(parents=True)
        (folder / ".env").write_text(f"TOKEN={package}\n")
        (folder.parent / ".env").write_text(f"TOKEN={package}\n")
    ran = place.sh(READ_ALL, *option)
    assert ran.status == 0 and ran.out == "end\n", ran
    assert "deep in it" not in ran.err, ran


def test_more_than_are_hidden(place):
    for package in range(1025):
        folder = place.work / f"p{package}"
        folder.mkdir()
        (folder / ".env").write_text("TOKEN=1\n")
    ran = place.sh(READ_ALL)
    assert ran.status == 125 and ran.out == "" and "--show-secrets" in ran.err, ran
    ran = place.sh(READ_ALL, "--show-secrets")
    assert ran.status == 0 and ran.out.count("TOKEN") == 1025
    (place.work / "p7/.env").unlink()
    assert place.sh(READ_ALL, limit=60).out == "end\n", "as many as are hidden"


def test_a_tree_that_is_larger_than_what_is_looked_through(place):
    """It is said at each start, and --hide finds all of them."""
    for package in range(4200):
        (place.work / f"p{package:04}").mkdir()
    deep = place.work / "p4199/deep"
    deep.mkdir()
    (deep / ".env").write_text("TOKEN=1\n")
    ran = place.sh(READ_ALL)
    assert ran.status == 0 and ran.out == "TOKEN=1\nend\n", ran
    assert ran.err.count("deep in it can be read; --hide GLOB") == 1, ran
    assert place.sh(READ_ALL, "--hide", "**/.env").out == "end\n"
    assert place.sh(READ_ALL, "--quiet").err == ""


@pytest.mark.parametrize("option", [(), ("--stage",), ("--ephemeral",), ("--read-only",)])
def test_what_may_not_be_looked_into_is_hidden_as_a_whole(place, option):
    """Its owner could change the mode, and so could the task."""
    if os.geteuid() == 0:
        pytest.skip("root looks into every directory")
    locked = [put(place.work / name / ".env").parent for name in ("locked", "sub/blind")]
    for path, mode in zip(locked, (0, 0o300)):
        path.chmod(mode)
    try:
        found = grep(place, *option, script="chmod -R u+rwx . 2>/dev/null; cat */.env */*/.env; ")
        assert not found and [path.stat().st_mode & 0o777 for path in locked] == [0, 0o300]
    finally:
        for path in locked:
            path.chmod(0o700)
