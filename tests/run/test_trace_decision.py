"""What an operator does with a task's change is on record before and after it: apply, discard and
review. As user and as root."""
import hashlib
import json
import os
import pwd
import subprocess

import pytest

import traces
from boxed import BAWN, LIMIT_S, place
from live import live
from test_faults import injector
from test_review import Review
from test_staged import CHANGE, contents, fill, staged, stages
from test_trace_note import verify
from test_trace_schema import check, make_validator
from test_trace_verify import verify as verify_both

__all__ = ["injector", "live", "make_validator", "place"]


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def decisions(state):
    """The records of decisions, in pairs; (intent, None) for one without its end."""
    found = {}
    for line in (state / "trace/ledger").read_bytes().splitlines():
        record = json.loads(line)
        if record["type"] == "decision":
            found[record["hash"]] = [record, None]
        if record["type"] == "decision.end":
            assert record["task"] == found[record["body"]["intent"]][0]["task"]
            assert found[record["body"]["intent"]][1] is None
            found[record["body"]["intent"]][1] = record
    return list(found.values())


def bodies(state):
    return [(intent["body"], end and end["body"]) for intent, end in decisions(state)]


def items(body, root):
    return {os.path.relpath(item["path"], root): (item["kind"], item["outcome"])
            for item in body["items"]}


def is_by_us(body):
    name = pwd.getpwuid(os.getuid()).pw_name
    return body["by"]["uid"] == os.getuid() and body["by"]["user"] == name


def read(live, verb, *words):
    ran = subprocess.run([BAWN, "trace", verb, *live.options, *words], capture_output=True,
                         stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, text=True)
    assert ran.returncode == 0, ran
    return ran.stdout


def test_an_apply_before_and_after(live, validator):
    fill(live.work)
    task = staged(live, CHANGE)
    assert live.verb("apply", "--dry-run").status == 0 and decisions(live.state) == []
    assert live.verb("apply").status == 0
    ((intent, end),) = decisions(live.state)
    first, last = intent["body"], end["body"]
    assert intent["task"] == task and end["seq"] == intent["seq"] + 1
    assert (first["verb"], last["verb"]) == ("apply", "apply")
    assert is_by_us(first) and is_by_us(last) and first["workspace"] == str(live.work)
    assert first["asked"] == [] and not first["overwrite"] and not first["resumed"]
    assert (first["outcomes"], last["outcomes"]) == ({"ready": 8}, {"applied": 8})
    kinds = {"created": "created", "edited": "modified", "removed": "removed", "link": "created",
             "made": "mode", "deep": "created", "deep/er": "created", "deep/er/f": "created"}
    assert items(last, live.work) == {path: (kind, "applied") for path, kind in kinds.items()}
    assert last["unlisted"] == 0 and last["failure"] is None
    for body in (first, last):
        hashes = {os.path.relpath(item["path"], live.work): (item["before"], item["after"])
                  for item in body["items"]}
        assert hashes["edited"] == (sha256("edited\n"), sha256("edited\nmore\n"))
        assert hashes["created"] == (None, sha256("new\n"))
        assert hashes["removed"] == (sha256("removed\n"), None)
        assert hashes["made"] == (sha256("made\n"), sha256("made\n"))
        assert hashes["link"] == hashes["deep"] == (None, None)
    verify(live)
    assert ("ledger", "decision.end") in check(validator, live.state / "trace")


def test_show_and_query_tell_it(live):
    fill(live.work)
    task = staged(live, CHANGE)
    assert live.verb("apply", task, "edited", "deep").status == 0
    assert live.verb("discard", "--yes", task).status == 0
    text = read(live, "show", task)
    told = [line.split(None, 3)[3] for line in text.splitlines() if " afterwards " in line]
    name = pwd.getpwuid(os.getuid()).pw_name
    assert told[0].startswith(f"apply by {name}: 4 applied ({live.work}/deep, "), text
    assert told[1].startswith(f"discard by {name}: 4 dropped ({live.work}/created, "), text
    assert "all of it can be reconstructed" in text
    said = json.loads(read(live, "show", "--json", task))
    assert [row["type"] for row in said["decisions"]] == ["decision", "decision.end"] * 2
    assert said["decisions"][1]["body"]["outcomes"] == {"applied": 4}
    found = read(live, "query", "--path", str(live.work / "removed"))
    assert found.count(" discard by ") == 2 and " apply by " not in found, found
    assert read(live, "query", "--type", "decision.end").count("\n") == 2


def test_what_does_not_come_and_what_was_asked(live):
    fill(live.work)
    task = staged(live, f"{CHANGE}; mkdir .vscode; echo x > .vscode/tasks.json")
    (live.work / "edited").write_text("the host's\n")
    assert live.verb("apply", task).status == 1
    assert live.verb("apply", "--overwrite", task, "edited").status == 0
    assert live.verb("discard", "--yes").status == 0
    (first, applied), (again, over), (_, dropped) = bodies(live.state)
    assert first["outcomes"] == {"ready": 7, "conflict": 1, "held": 2}
    assert applied["outcomes"] == {"applied": 7, "conflict": 1, "held": 2}
    found = {os.path.relpath(item["path"], live.work): item for item in applied["items"]}
    assert found["edited"]["outcome"] == "conflict" and found["edited"]["reason"]
    assert found[".vscode/tasks.json"]["outcome"] == "held"
    assert again["asked"] == ["edited"] and again["overwrite"]
    assert over["outcomes"] == {"applied": 1}
    assert over["items"][0]["before"] == sha256("the host's\n")
    assert items(dropped, live.work) == {".vscode": ("created", "dropped"),
                                         ".vscode/tasks.json": ("created", "dropped")}
    verify(live)


def spoil(state):
    """The ledger takes nothing, not even from root; puts it back."""
    ledger, kept = state / "trace/ledger", state / "trace/kept"
    state.joinpath("trace").mkdir(mode=0o700, exist_ok=True)
    if ledger.exists():
        ledger.rename(kept)
    ledger.mkdir()

    def mend():
        ledger.rmdir()
        if kept.exists():
            kept.rename(ledger)
    return mend


def test_nothing_is_done_that_cannot_be_written_down(live):
    fill(live.work)
    before = contents(live.work)
    task = staged(live, CHANGE)
    mend = spoil(live.state)
    for words in (("apply", task), ("discard", "--yes", task)):
        ran = live.verb(*words)
        assert ran.status in (1, 125) and "ledger" in ran.err, ran
        assert contents(live.work) == before and stages(live) == [task]
    ran = live.verb("apply", "--resume", task)
    assert ran.status == 1 and "no apply" in ran.err, "it was never begun"
    assert live.verb("apply", "--dry-run", task).status == 0
    mend()
    assert live.verb("apply", task).status == 0
    assert [end["outcomes"] for _, end in bodies(live.state)] == [{"applied": 8}]


def test_one_that_is_killed_has_no_end(live, injector):
    fill(live.work)
    task = staged(live, CHANGE)
    note = live.base / "calls"
    # renameat2: the first file that comes
    ran = live.verb("apply", task,
                    prefix=[injector, "fail", "0", "0", "316", "0", note, "--"])
    assert ran.status == 128 + 9 and note.read_text().startswith("hit"), ran
    ((intent, end),) = bodies(live.state)
    assert intent["outcomes"] == {"ready": 8} and end is None
    text = read(live, "show", task)
    assert "no end on record" in text and "a decision about its change" in text, text
    assert not json.loads(read(live, "show", "--json", task))["reach"]["is_reconstructible"]
    assert live.verb("apply", "--resume", task).status == 0
    (_, (again, last)) = bodies(live.state)
    assert again["resumed"] and last["failure"] is None
    verify(live)


def test_more_than_are_listed(live, validator):
    staged(live, "i=0; while [ $i -lt 1100 ]; do : > f$i; i=$((i + 1)); done")
    assert live.verb("apply").status == 0
    for body in bodies(live.state)[0]:
        assert len(body["items"]) == 1024 and body["unlisted"] == 76
        assert list(body["outcomes"].values()) == [1100]
    check(validator, live.state / "trace")


def test_names_of_any_bytes_and_secrets(live):
    secret = "correct-horse-battery"
    task = staged(live, f"echo x > \"$(printf 'a\\n\\377')\"; echo x > {secret}")
    ran = live.verb("apply", task, env={**os.environ, "DEPLOY_PASSWORD": secret})
    assert ran.status == 0, ran
    ((_, last),) = bodies(live.state)
    names = {os.path.relpath(item["path"], live.work) for item in last["items"]}
    assert "a\n\udcff" in names and len(names) == 2, names
    ledger = (live.state / "trace/ledger").read_bytes()
    assert secret.encode() not in ledger and b"[masked:env.DEPLOY_PASSWORD:" in ledger
    verify(live)


def test_of_a_task_without_a_record(live):
    task = staged(live, "echo x > a", "--no-trace")
    assert live.verb("apply", task).status == 0
    (((intent, _)),) = decisions(live.state)
    assert intent["task"] == task
    verify(live)


@pytest.fixture(name="review")
def make_review(place):
    return Review(place)


def test_a_review_is_one_for_each_task(review):
    ids = {name: item["id"] for name, item in review.items().items()}
    run = subprocess.run([BAWN, "review", "accept", "--state-dir", review.place.state, "--yes",
                          "t-0001"], capture_output=True, cwd="/", timeout=LIMIT_S, check=False)
    assert run.returncode == 1, "a link cannot be accepted"
    ((first, last),) = bodies(review.place.state)
    assert first["verb"] == "review accept" and is_by_us(first) and first["workspace"] is None
    assert (first["outcomes"], last["outcomes"]) == ({"ready": 3}, {"accepted": 2, "failed": 1})
    found = {item["review"]: item for item in last["items"]}
    hook = found[ids["hooks/pre-commit"]]
    assert hook["path"] == f"{review.gitdir}/hooks/pre-commit" and hook["outcome"] == "accepted"
    data = (review.gitdir / "hooks/pre-commit").read_bytes()
    assert (hook["before"], hook["after"]) == (None, hashlib.sha256(data).hexdigest())
    assert found[ids["core.fsmonitor"]]["key"] == "core.fsmonitor"
    link = found[ids["li\nnk"]]
    assert link["outcome"] == "failed" and link["reason"]
    run = subprocess.run([BAWN, "review", "reject", "--state-dir", review.place.state, "--yes",
                          "t-0001"], capture_output=True, cwd="/", timeout=LIMIT_S, check=False)
    assert run.returncode == 0
    last = bodies(review.place.state)[1][1]
    assert last["verb"] == "review reject" and last["outcomes"] == {"rejected": 1}


@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_no_review_that_cannot_be_written_down(review, verb):
    spoil(review.place.state)
    run = subprocess.run([BAWN, "review", verb, "--state-dir", review.place.state, "--yes",
                          "t-0001"], capture_output=True, cwd="/", timeout=LIMIT_S, check=False)
    assert run.returncode == 125 and b"ledger" in run.stderr and not run.stdout, run
    assert len(review.items()) == 3 and not (review.gitdir / "hooks/pre-commit").exists()


@pytest.mark.parametrize("which", [0, 1], ids=["the decision", "its end"])
def test_one_that_is_removed_is_noticed(tmp_path, which):
    """Both verifiers name the line behind it."""
    store = traces.Store(tmp_path / "state", seed=31)
    task = store.task(policy=store.policy(b"p")).end()
    store.decide(task)
    store.task(policy=store.policy(b"p")).end()
    ledger = store.root / "ledger"
    assert verify_both(store.root).status == 0
    lines = ledger.read_bytes().splitlines(keepends=True)
    at = [n for n, line in enumerate(lines) if b'"type":"decision' in line][which]
    ledger.write_bytes(b"".join(lines[:at] + lines[at + 1:]))
    assert verify_both(store.root).findings == [(str(ledger), at + 1, "removed")]
