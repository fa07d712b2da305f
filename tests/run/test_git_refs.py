"""Many references of a task come to the host as one change of packed-refs, each only where the
host's is still the one of the start."""
import pytest

from boxed import LIMIT_S, place
from test_git_box import EXPORT, Held, git, plain
from test_git_objects import fsck

__all__ = ["place"]

COUNT = 800
MANY = (f"for i in $(seq {COUNT}); do echo create refs/{{kind}}/n$((i % 50))/$i HEAD; done | "
        "git update-ref --stdin")


def many(kind="tags"):
    return MANY.replace("{kind}", kind)


def refs(directory):
    """Name to value, with what annotated tags stand for."""
    lines = git(directory, "show-ref", "-d", check=False).stdout.splitlines()
    return {name: value for value, name in map(str.split, lines)}


def loose(directory):
    root = directory / ".git/refs"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["tags", "heads", "remotes/far"])
def test_many_are_one_change(place, kind):
    """Branches, and those of a remote, have logs, too."""
    plain(place)
    git(place.work, "tag", "-am", "note", "noted")
    git(place.work, "pack-refs", "--all")
    git(place.work, "branch", "loose")
    before, files = refs(place.work), loose(place.work)
    ran = place.sh(EXPORT + many(kind) + "; echo x >>f; git commit -qam three",
                   limit=3 * LIMIT_S)
    assert ran.status == 0 and not ran.err, ran
    after = refs(place.work)
    assert len(after) == len(before) + COUNT
    assert {name: after[name] for name in before if name != "refs/heads/main"} == \
        {name: before[name] for name in before if name != "refs/heads/main"}
    assert after["refs/tags/noted^{}"] == before["refs/tags/noted^{}"]
    # what was in no file of its own still is in none
    assert loose(place.work) == files
    assert not list((place.work / ".git").rglob("*.lock"))
    assert git(place.work, "log", "-1", "--format=%s").stdout == "three\n"
    if kind == "heads":
        assert git(place.work, "reflog", "heads/n1/1").stdout.count("\n") == 1
    fsck(place.work)
    # the next task goes on with them
    ran = place.sh(f"git for-each-ref --format='delete %(refname)' refs/{kind}/n7 | "
                   "git update-ref --stdin; git for-each-ref | wc -l")
    assert ran.status == 0 and not ran.err, ran
    assert len(refs(place.work)) == len(after) - COUNT // 50
    fsck(place.work)


def test_what_the_host_did_meanwhile_counts(place):
    plain(place)
    git(place.work, "branch", "packed")
    git(place.work, "pack-refs", "--all")
    old = git(place.work, "rev-parse", "HEAD~1").stdout
    with Held(place, many() + "; git update-ref refs/heads/packed HEAD~1; "
                              "git update-ref refs/heads/other HEAD") as held:
        # in a file, packed, changed, and a directory in the place of one
        git(place.work, "update-ref", "refs/tags/n1/1", "HEAD~1")
        git(place.work, "update-ref", "refs/tags/n2/2", "HEAD~1")
        git(place.work, "update-ref", "refs/heads/packed", "main^{tree}~0", check=False)
        git(place.work, "update-ref", "refs/heads/new", "HEAD")
        git(place.work, "update-ref", "refs/tags/n3/3/below", "HEAD~1")
        git(place.work, "pack-refs", "--all")
        git(place.work, "update-ref", "refs/tags/n4/4", "HEAD~1")
        git(place.work, "update-ref", "refs/tags/n5/5/below", "HEAD~1")
    found = refs(place.work)
    for name in ("n1/1", "n2/2", "n4/4", "n3/3/below", "n5/5/below"):
        assert found["refs/tags/" + name] + "\n" == old, name
    for name in ("n3/3", "n5/5"):
        assert "refs/tags/" + name not in found
    assert found["refs/heads/packed"] + "\n" == old
    assert found["refs/heads/other"] == found["refs/heads/main"] == found["refs/heads/new"]
    assert len([name for name in found if name.startswith("refs/tags/n")]) == COUNT
    assert held.err.count(b"refs/tags/n") == 5, held.err
    fsck(place.work)


def test_they_come_one_by_one_where_packed_refs_is_locked(place):
    plain(place)
    with Held(place, many()) as held:
        (place.work / ".git/packed-refs.lock").touch()
    assert not held.err and len(loose(place.work)) == COUNT + 2
    (place.work / ".git/packed-refs.lock").unlink()
    fsck(place.work)


def test_names_that_exclude_each_other(place):
    plain(place)
    git(place.work, "branch", "x")
    git(place.work, "branch", "y/z")
    git(place.work, "pack-refs", "--all")
    ran = place.sh(many() + "; git branch -q -D x y/z; git branch x/y; git branch y")
    assert ran.status == 0 and not ran.err, ran
    found = refs(place.work)
    assert "refs/heads/x/y" in found and "refs/heads/y" in found 
    assert not {"refs/heads/x", "refs/heads/y/z"} & set(found)
    fsck(place.work)


@pytest.mark.parametrize("line", ["0" * 39 + "1 refs/tags/evil", "{id} refs/replace/{id}",
                                  "{id} refs/heads/../../evil", "{id} refs/heads/--evil"])
def test_what_is_no_reference_does_not_come_with_them(place, line):
    plain(place)
    name = git(place.work, "rev-parse", "HEAD").stdout.strip()
    ran = place.sh(many() + "; git pack-refs --all; "
                   f"echo '{line.replace('{id}', name)}' >>.git/packed-refs")
    assert ran.status == 0 and "held" in ran.err, ran
    # of a list that git would not write nothing comes
    if (place.work / ".git/packed-refs").exists():
        text = (place.work / ".git/packed-refs").read_text()
        assert "evil" not in text and "replace" not in text
    fsck(place.work)
