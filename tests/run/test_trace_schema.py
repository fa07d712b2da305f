"""docs/schema/trace.schema.json: every record that is written follows it, those of bawn and those
that the tests make."""
import json
import subprocess

import jsonschema
import pytest
import traces
from boxed import BAWN, ROOT

SCHEMA = ROOT / "docs" / "schema"


@pytest.fixture(scope="module", name="validator")
def make_validator():
    schemas = {name: json.loads((SCHEMA / f"{name}.schema.json").read_text())
               for name in ("action", "result", "trace")}
    jsonschema.Draft202012Validator.check_schema(schemas["trace"])
    store = {each["$id"]: each for each in schemas.values()}
    store |= {f"{name}.schema.json": each for name, each in schemas.items()}
    resolver = jsonschema.RefResolver.from_schema(schemas["trace"], store=store)
    return jsonschema.Draft202012Validator(schemas["trace"], resolver=resolver)


def check(validator, root):
    """Validates all records below the trace; gives their layers and types."""
    found = set()
    for path in (root / "ledger", *(root / "tasks").iterdir()):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            record = json.loads(line)
            faults = [f"{path.name}:{number}: {error.json_path}: {error.message}"
                      for error in validator.iter_errors(record)]
            for error in validator.iter_errors(record):
                faults += [f"  {each.json_path}: {each.message}" for each in error.context
                           if "layer" not in each.json_path and "type" not in each.json_path]
            assert not faults, "\n".join(faults)[:4000]
            found.add((record["layer"], record["type"]))
    return found


def test_made_records(validator, tmp_path):
    store = traces.Store(tmp_path / "state", seed=20)
    task = store.task(meta={"agent": "some", "turn": "3"})
    task.box()
    action = task.run(["a\n", b"\xff\0"[:1]], out=b"1", denials=[traces.denial()],
                      hits=[traces.limit_hit()], changes=[traces.change()],
                      chunks=[(0.1, 0, b"x")])
    task.approval(action=action)
    task.note("text", {"a": "b"})
    store.decide(task, outcome=None)
    store.decide(task)
    store.remove_blob(task.end(), traces.sha256(b"x"))
    store.remove(task)
    store.task().lose()
    store.head()
    found = check(validator, store.root)
    assert ("ledger", "head") in found and ("result", "task.lost") in found


def test_own_records(validator, tmp_path):
    """What bawn itself writes: a run with a denial, a failed one, one that took too long."""
    state, workspace = tmp_path / "state", tmp_path / "workspace"
    workspace.mkdir()
    for command, options in ((["unshare", "-Ur", "true"], []), (["echo", "out"], []),
                             (["absent-command"], ["--meta", "goal=see"]),
                             (["sleep", "9"], ["--timeout", "200ms"])):
        subprocess.run([BAWN, "run", "--quiet", "--state-dir", state, *options, "--", *command],
                       cwd=workspace, capture_output=True, timeout=60, check=False)
    found = check(validator, state / "trace")
    for each in (("ledger", "task.end"), ("policy", "task.start"), ("execution", "action.intent"),
                 ("execution", "action.start"), ("execution", "denial"),
                 ("result", "action.result"), ("result", "stream"), ("result", "task.end")):
        assert each in found, found
    done = subprocess.run([BAWN, "trace", "verify", "--state-dir", state], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done


def test_others_are_refused(validator, tmp_path):
    store = traces.Store(tmp_path / "state", seed=21)
    record = json.loads((store.root / "ledger").read_text())
    assert validator.is_valid(record)
    for name in record:
        assert not validator.is_valid({k: v for k, v in record.items() if k != name}), name
    for change in ({"v": 2}, {"extra": 1}, {"layer": "net"}, {"body": {}}, {"hash": "0" * 63}):
        assert not validator.is_valid({**record, **change}), change
