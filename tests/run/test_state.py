"""The state directory: whose it is, where it may lie, what is left in it."""
import os
import stat

import pytest

from boxed import place, refused

__all__ = ["place"]


def test_layout_and_modes(place):
    ran = place.run("--", "true")
    assert ran.status == 0, ran
    assert sorted(os.listdir(place.state / "tasks")) == []
    assert stat.S_IMODE(os.stat(place.state).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(place.state / "skeletons").st_mode) == 0o700


def test_the_root_is_kept_once(place):
    for _ in range(3):
        assert place.run("--", "true").status == 0
    assert len(os.listdir(place.state / "skeletons")) == 1


def test_a_half_made_root_does_not_matter(place):
    assert place.run("--", "true").status == 0
    skeletons = place.state / "skeletons"
    (name,) = os.listdir(skeletons)
    (skeletons / name).rename(skeletons / "new-999999")
    assert place.sh("cat /etc/passwd").status == 0
    assert name in os.listdir(skeletons)


def test_a_task_cannot_write_the_root(place):
    ran = place.sh("for f in / /etc /etc/passwd /dev /run /run/bawn; do "
                   "[ -w $f ] && echo writable $f; done; touch /x /etc/x; chmod 777 /etc; "
                   "ln -f /etc/passwd /x; mv /etc /etc2; true")
    assert ran.out == "", ran
    assert place.sh("cat /etc/passwd | wc -l").out.strip() == "3"


@pytest.mark.parametrize("link", [False, True])
def test_never_inside_of_the_workspace(place, link):
    inside = place.work / "state"
    inside.mkdir(mode=0o700)
    given = inside
    if link:
        (place.base / "link").symlink_to(place.work)
        given = place.base / "link" / "state"
    ran = place.run("--state-dir", given, "--", "touch", "started")
    refused(ran, place, 126, str(place.work), "bawn's own state")


def test_open_to_others_is_refused(place):
    place.state.chmod(0o755)
    refused(place.run("--", "touch", "started"), place, 125, "open to others", "chmod 700")


def test_a_link_is_refused(place):
    (place.base / "other").symlink_to(place.state)
    ran = place.run("--state-dir", place.base / "other", "--", "touch", "started")
    refused(ran, place, 125, "other")


def test_many_roots_do_not_pile_up(place):
    for number in range(40):
        made = place.work / f"w{number}"
        made.mkdir()
        assert place.run("--workspace", made, "--", "true").status == 0
    assert len(os.listdir(place.state / "skeletons")) <= 33
