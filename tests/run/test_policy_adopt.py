"""bawn policy adopt: a project's proposal, what it would change, and that nothing else takes it."""
import hashlib
import json
import os
import stat

import pytest

from boxed import place
from hosted import STORE, Hosted

__all__ = ["place"]


@pytest.fixture
def hosted(place):
    return Hosted(place)


def propose(place, text):
    (place.work / ".bawn.yaml").write_text("version: 1\n" + text)


def adopt(hosted, *arguments, **options):
    return hosted.bawn("policy adopt", *hosted.place.options, *arguments, **options)


def value(hosted, *options, **keywords):
    ran = hosted.run(*options, "--", "sh", "-c", "echo $PROJECT", **keywords)
    assert ran.returncode == 0, ran
    return ran.stdout.strip(), ran.stderr


def test_a_proposal_is_never_read_by_a_start(place, hosted):
    """Attack: a task writes a policy for the next start."""
    ran = hosted.run("--", "sh", "-c",
                     "printf 'version: 1\\nenvironment: {set: {PROJECT: planted}}\\n"
                     "kernel: {ptrace: true}\\n' > .bawn.yaml")
    assert ran.returncode == 0, ran
    said, hint = value(hosted)
    assert said == "" and hint.count("\n") == 1 and "`bawn policy adopt`" in hint, hint
    assert value(hosted, "--quiet")[1] == ""
    ran = hosted.bawn("policy show", "--effective")
    assert "planted" not in ran.stdout and "project" not in ran.stdout, ran
    # nor one that is no policy at all
    for text in ("version: 1\nnonsense: true\n", "\0\0", "[" * 100000):
        (place.work / ".bawn.yaml").write_text(text)
        assert value(hosted)[0] == ""


def test_adopt_shows_asks_and_keeps(place, hosted):
    propose(place, "environment: {set: {PROJECT: one}}\nlimits: {pids: 2000}\n"
                   "filesystem: {read: [/opt/new], hide: [private]}\n")
    # nobody can be asked here: nothing is done
    ran = adopt(hosted)
    assert ran.returncode == 2 and "--yes" in ran.stderr, ran
    name = f"{place.work}/.bawn.yaml"
    allows, _, denies = ran.stdout.partition(f"{name} newly denies:\n")
    assert allows.startswith(f"{name} newly allows:\n"), ran
    for line in ("the variable PROJECT=one", "limits.pids 2000, before 1024 (built in)",
                 f'reading /opt/new ["filesystem.read" {name}:4]'):
        assert line in allows, (line, ran)
    assert "any look at private" in denies, ran
    assert value(hosted)[0] == "" and not hosted.store.exists()

    propose(place, "environment: {set: {PROJECT: one}}\n")
    ran = adopt(hosted, "--yes")
    assert ran.returncode == 0 and ran.stdout.endswith("adopted\n"), ran
    said, hint = value(hosted)
    assert said == "one" and hint == "", hint
    # named by where it is kept, and as what it is
    key = hashlib.sha256(str(place.work).encode()).hexdigest()
    ran = hosted.bawn("policy show", "--effective")
    assert f'"environment.set" {STORE}/projects/{key}.yaml:2, project]' in ran.stdout, ran
    kept = hosted.store / "projects" / f"{key}.yaml"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text() == (place.work / ".bawn.yaml").read_text()
    assert sorted(os.listdir(kept.parent)) == [f"{key}.origin", f"{key}.yaml"]

    # it is this workspace's alone
    other = place.base / "other"
    other.mkdir()
    assert value(hosted, cwd=other)[0] == ""
    # adopting it again changes nothing
    ran = adopt(hosted, "--yes")
    assert ran.returncode == 0 and "changes nothing" in ran.stdout, ran


def test_what_was_adopted_goes_on_until_it_is_adopted_again(place, hosted):
    propose(place, "environment: {set: {PROJECT: one}}\nfilesystem: {hide: [x]}\n")
    assert adopt(hosted, "--yes").returncode == 0
    propose(place, "environment: {set: {PROJECT: two}}\n")
    said, hint = value(hosted)
    assert said == "one" and "is not what was adopted" in hint, hint
    ran = adopt(hosted)
    # against what holds now, which is the first one
    assert "the variable PROJECT=two" in ran.stdout and "any look at x\n" in ran.stdout, ran
    assert adopt(hosted, "--yes").returncode == 0
    assert value(hosted) == ("two", "")
    (place.work / ".bawn.yaml").unlink()
    assert value(hosted) == ("two", "")
    ran = adopt(hosted, "--drop")
    assert ran.returncode == 2 and "the variable PROJECT=two" in ran.stdout, ran
    assert value(hosted)[0] == "two"
    ran = adopt(hosted, "--drop", "--yes")
    assert ran.returncode == 0 and ran.stdout.endswith("dropped\n"), ran
    assert value(hosted)[0] == ""
    assert os.listdir(hosted.store / "projects") == []
    ran = adopt(hosted, "--drop", "--yes")
    assert ran.returncode == 1 and "nothing is adopted" in ran.stderr, ran


def test_a_lock_is_for_projects_too(place, hosted):
    path = hosted.manage("lock: [kernel]\n")
    propose(place, "kernel: {ptrace: true}\n")
    ran = adopt(hosted, "--yes")
    assert ran.returncode == 1 and f"locked by {path}:2" in ran.stderr, ran
    assert f"{place.work}/.bawn.yaml:2:" in ran.stderr and not hosted.store.exists()


@pytest.mark.parametrize("text, words", [
    ("worspace: direct\n", ".bawn.yaml:2:1: unknown key"),
    ("isolation: {floor: microvm}\n", "this build lacks"),
    ("filesystem: {read: [/]}\n", "over-broad"),
])
def test_what_is_no_policy_is_not_adopted(place, hosted, text, words):
    propose(place, text)
    ran = adopt(hosted, "--yes")
    assert ran.returncode == 1 and words in ran.stdout + ran.stderr, ran
    assert not hosted.store.exists()


def test_proposals_of_every_evil_kind(place, hosted):
    """What a task can put there neither hangs a start nor is followed."""
    proposal = place.work / ".bawn.yaml"
    secret = place.base / "secret"
    secret.write_text("version: 1\nenvironment: {set: {PROJECT: linked}}\n")
    makers = {"link": lambda: proposal.symlink_to(secret), "fifo": lambda: os.mkfifo(proposal),
              "directory": proposal.mkdir, "loop": lambda: proposal.symlink_to(".bawn.yaml"),
              "giant": lambda: (proposal.touch(), os.truncate(proposal, 1 << 40)),
              "device": lambda: proposal.symlink_to("/dev/zero")}
    for kind, make in makers.items():
        make()
        ran = adopt(hosted, "--yes")
        assert ran.returncode == 1 and ran.stderr.startswith("bawn: "), (kind, ran)
        assert value(hosted)[0] == "", kind
        assert not hosted.store.exists(), kind
        if kind == "directory":
            proposal.rmdir()
        else:
            proposal.unlink()
    # text that would write to a terminal
    proposal.write_text('version: 1\nenvironment: {set: {A: "\\e]0;x\\a\\u202e"}}\n')
    ran = adopt(hosted)
    assert "\x1b" not in ran.stdout and "\u202e" not in ran.stdout, ran


def test_nothing_inside_of_a_box_adopts(place, hosted):
    propose(place, "environment: {set: {PROJECT: one}}\n")
    program = place.work / "bawn"
    program.write_bytes(open(os.environ.get("BAWN", "build/bawn"), "rb").read())
    program.chmod(0o755)
    ran = hosted.run("--", "./bawn", "policy", "adopt", "--yes")
    assert ran.returncode == 1 and "inside of a box" in ran.stderr, ran
    assert value(hosted)[0] == "" and not hosted.store.exists()


def test_it_is_on_record(place, hosted):
    propose(place, "environment: {set: {PROJECT: one}}\n")
    assert adopt(hosted, "--yes").returncode == 0
    assert adopt(hosted, "--drop", "--yes").returncode == 0
    files = [path for path in (place.state / "trace").rglob("ledger*") if path.is_file()]
    ledger = [json.loads(line) for path in files
              for line in path.read_text().splitlines()]
    rows = [(row["type"], row["body"]["verb"], row["body"]["items"][0]["outcome"])
            for row in ledger if row["type"].startswith("decision")]
    assert rows == [("decision", "policy adopt", "ready"),
                    ("decision.end", "policy adopt", "applied"),
                    ("decision", "policy adopt --drop", "ready"),
                    ("decision.end", "policy adopt --drop", "dropped")], ledger
    digest = hashlib.sha256((place.work / ".bawn.yaml").read_bytes()).hexdigest()
    first = next(row for row in ledger if row["type"] == "decision")
    assert first["body"]["items"][0]["after"] == digest
    ran = hosted.bawn("trace verify")
    assert ran.returncode == 0, ran


def test_a_store_that_somebody_else_could_write(place, hosted):
    propose(place, "environment: {set: {PROJECT: one}}\n")
    assert adopt(hosted, "--yes").returncode == 0
    projects = hosted.store / "projects"
    projects.chmod(0o777)
    ran = hosted.run("--", "touch", "started")
    assert ran.returncode == 125 and "everybody can write" in ran.stderr, ran
    assert not (place.work / "started").exists()
    ran = adopt(hosted, "--yes")
    assert ran.returncode == 1, ran
