"""husky and pre-commit as they are, installed and used in a box: their hooks run there with each
commit, and on the host when a person said so. In place and staged."""
import json
import os
import shutil
import subprocess

import pytest

from boxed import BAWN, ROOT
from live import live
from test_git_box import EXPORT, IDENTITY, git, init

__all__ = ["live"]

HUSKY = ROOT / "build-deps/husky-9.1.7"
MODES = {"direct": [], "staged": ["--stage"]}
CONFIG = """\
repos:
- repo: local
  hooks:
  - {id: mark, name: mark, language: system, entry: sh -c 'echo tested >> tests.log',
     always_run: true, pass_filenames: false}
"""
PACKAGE = {"name": "x", "version": "1.0.0", "scripts": {"test": "echo tested >> tests.log"}}


def marks(live):
    """How often the hook ran, by what it leaves in an ignored file."""
    log = live.work / "tests.log"
    return log.read_text().count("tested\n") if log.exists() else 0


@pytest.fixture
def project(live):
    init(live.work)
    (live.work / "package.json").write_text(json.dumps(PACKAGE))
    (live.work / ".pre-commit-config.yaml").write_text(CONFIG)
    (live.work / ".gitignore").write_text("node_modules\ntests.log\n")
    git(live.work, "add", ".")
    git(live.work, "commit", "-qm", "first")
    return live


def in_box(live, mode, script):
    """Installs, commits; all that is brought over by itself is."""
    ran = live.sh(f"{EXPORT} set -e; {script}; echo x > made; git add -A; git commit -qm inside; "
                  "cat tests.log", *MODES[mode], limit=60)
    assert ran.status == 0 and ran.out.endswith("tested\n"), ran
    said = live.verb("apply", limit=60).out if mode == "staged" else ran.err
    assert git(live.work, "log", "-1", "--format=%s").stdout == "inside\n"
    return said


def review(live, *words):
    ran = subprocess.run([BAWN, "review", words[0], *live.options, *words[1:]], cwd=live.work,
                         check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran
    return ran.stdout


def held(live):
    rows = json.loads(review(live, "ls", "--json"))["held"]
    return {row["key"] or row["path"]: row["id"] for row in rows}


def host_commits(live):
    """A person's commit, with the home that they have."""
    before = marks(live)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "host"], cwd=live.work,
                   env={**os.environ, **IDENTITY, "HOME": str(live.base)}, check=True,
                   capture_output=True, timeout=60)
    return marks(live) - before


def accept(live, *names):
    for name in names:
        review(live, "accept", "--yes", held(live)[name])


@pytest.mark.parametrize("mode", MODES)
def test_husky(project, mode):
    if not HUSKY.exists():
        pytest.skip("npm did not give husky: tools/setup")
    tools = project.work / "node_modules"
    shutil.copytree(HUSKY, tools / "husky")
    (tools / ".bin").mkdir()
    (tools / ".bin/husky").symlink_to("../husky/bin.js")
    (tools / "husky/bin.js").chmod(0o755)
    said = in_box(project, mode, "node_modules/.bin/husky init")
    assert ".husky" in said and "core.hookspath" in said, said
    assert not (project.work / ".husky").exists()
    assert git(project.work, "config", "core.hooksPath", check=False).stdout == ""
    assert host_commits(project) == 0, "nobody agreed to it yet"
    if mode == "staged":
        assert project.verb("apply", ".husky").status == 0
        accept(project, "core.hookspath")
    else:
        accept(project, ".husky", "core.hookspath")
    assert (project.work / ".husky/pre-commit").read_text() == "npm test\n"
    assert git(project.work, "config", "core.hooksPath").stdout == ".husky/_\n"
    assert git(project.work, "status", "--porcelain").stdout == ""
    assert host_commits(project) == 1 and held(project) == {}
    # what the host runs by now a task does not change, and runs itself
    ran = project.sh(f"{EXPORT} echo evil > .husky/pre-commit; echo evil > .husky/_/h; "
                     "echo y > made; git commit -qam again; cat tests.log", *MODES[mode], limit=60)
    assert ran.status == 0 or mode == "staged", ran
    if mode == "staged":
        project.verb("apply")
    assert (project.work / ".husky/pre-commit").read_text() == "npm test\n"
    assert "evil" not in (project.work / ".husky/_/h").read_text()


@pytest.mark.parametrize("mode", MODES)
def test_pre_commit(project, mode):
    if not shutil.which("pre-commit"):
        pytest.skip("pre-commit is not installed: tools/setup")
    said = in_box(project, mode, "pre-commit install")
    assert "hooks/pre-commit" in said, said
    assert not (project.work / ".git/hooks/pre-commit").exists()
    assert host_commits(project) == 0, "nobody agreed to it yet"
    accept(project, "hooks/pre-commit")
    assert "pre-commit" in (project.work / ".git/hooks/pre-commit").read_text()
    assert git(project.work, "status", "--porcelain").stdout == ""
    assert host_commits(project) == 1 and held(project) == {}
