"""What of /etc is shown by copy: always the host's content of today, and only what may be shown.

The host's /etc is one of the test's own here, bound over the real one in a mount namespace.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, place

__all__ = ["place"]

OWN = ["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private", "sh", "-c",
       'mount --bind "$0" /etc && exec "$@"']
NAMES = ["passwd", "group", "nsswitch.conf", "ld.so.cache", "alternatives"]
KIB = 1024


class Etc:
    def __init__(self, place):
        self.place = place
        self.path = place.base / "etc"
        self.path.mkdir(mode=0o755)
        for name in NAMES:
            source = Path("/etc", name)
            if source.is_dir():
                shutil.copytree(source, self.path / name, symlinks=True)
            elif source.exists():
                shutil.copy(source, self.path / name)
        self.write("services", "first 1/tcp\n")
        self.write("perl/Net/libnet.cfg", "first\n")

    def write(self, name, text, mode=0o644):
        path = self.path / name
        path.parent.mkdir(mode=0o755, exist_ok=True, parents=True)
        path.write_text(text)
        path.chmod(mode)

    @property
    def prefix(self):
        return [*OWN, str(self.path)]

    def plan(self, *options):
        """{target: kind} of the plan."""
        asked = subprocess.run(
            [*self.prefix, BAWN, "plan", *self.place.options, *options, "--", "true"],
            cwd=self.place.work, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        rows = [line.split() for line in asked.stdout.splitlines()]
        return {row[3]: row[2] for row in rows
                if len(row) > 3 and row[2] in ("bind", "copy", "overlay")}

    def settle(self, *targets):
        """What changed a moment ago is bound and not copied yet."""
        assert eventually(lambda: all(self.plan().get(target) == "copy" for target in targets))

    def sh(self, script, *options):
        return self.place.sh(script, *options, prefix=self.prefix)


@pytest.fixture
def etc(place):
    return Etc(place)


def shown(etc):
    ran = etc.sh("cat /etc/services /etc/perl/Net/libnet.cfg")
    assert ran.status == 0, ran
    return ran.out.split("\n")[:-1]


def test_changes_are_seen_by_the_next_run(etc):
    both = ("/etc/services", "/etc/perl")
    etc.settle(*both)
    assert shown(etc) == ["first 1/tcp", "first"]
    # in place and of the same length, at the top and two directories down
    etc.write("services", "other 1/tcp\n")
    etc.write("perl/Net/libnet.cfg", "other\n")
    assert etc.plan()["/etc/services"] == "bind"
    assert shown(etc) == ["other 1/tcp", "other"]
    etc.settle(*both)
    assert shown(etc) == ["other 1/tcp", "other"]
    # by another file of an old date under the same name
    etc.write("new", "third 1/tcp\n")
    os.utime(etc.path / "new", (0, 0))
    (etc.path / "new").rename(etc.path / "services")
    etc.settle(*both)
    assert shown(etc) == ["third 1/tcp", "other"]
    (etc.path / "services").unlink()
    assert etc.sh("! ls /etc/services").status == 0


def test_copies_are_like_the_hosts(etc):
    etc.write("perl/tool", "#!/bin/sh\necho it runs\n", 0o755)
    os.utime(etc.path / "services", (1234567, 1234567))
    (etc.path / "perl" / "link").symlink_to("Net/libnet.cfg")
    etc.settle("/etc/services", "/etc/perl")
    ran = etc.sh("stat -c '%a %Y' /etc/services; /etc/perl/tool; cat /etc/perl/link; "
                 "stat -c %a /etc/perl/tool")
    assert ran.out.splitlines() == ["644 1234567", "it runs", "first", "755"], ran
    for script in ("echo x >> /etc/services", "echo x > /etc/perl/new", "rm /etc/services",
                   "chmod 777 /etc/services", "mv /etc/perl /etc/lrep", "touch /etc/perl/Net"):
        ran = etc.sh(script)
        # a root caller's task is not the owner of the copies
        no = "Permission denied|Operation not permitted" if IS_ROOT else "Read-only file system"
        assert ran.status != 0 and re.search(no + "|Read-only", ran.err), (script, ran)
    assert shown(etc) == ["first 1/tcp", "first"]


def test_hidden_names_are_absent(etc):
    etc.write("perl/other", "shown\n")
    etc.settle("/etc/services", "/etc/perl")
    assert etc.sh("true").status == 0
    ran = etc.sh("! ls /etc/services", "--hide", "/etc/services")
    assert ran.status == 0, ran
    ran = etc.sh("! ls /etc/perl/Net/libnet.cfg && cat /etc/perl/other", "--hide",
                 "/etc/perl/Net/libnet.cfg")
    assert (ran.status, ran.out) == (0, "shown\n"), ran
    ran = etc.sh("! ls /etc/perl/Net/libnet.cfg && cat /etc/perl/other", "--hide",
                 "/etc/perl/**/*.cfg")
    assert (ran.status, ran.out) == (0, "shown\n"), ran


def test_a_flag_shows_the_hosts_own(etc):
    etc.settle("/etc/services", "/etc/perl")
    assert etc.plan("--read", "/etc/services")["/etc/services"] == "bind"
    assert etc.plan("--read", "/etc/perl/Net")["/etc/perl"] == "bind"
    assert etc.plan("--read", "/etc/perl/Net")["/etc/services"] == "copy"


def test_what_is_large_or_not_for_all_is_bound(etc):
    etc.write("mime.types", "x" * (256 * KIB + 1))
    etc.write("protocols", "secret\n", 0o600)
    etc.write("groff/secret", "secret\n", 0o600)
    for number in range(9):
        etc.write(f"xml/{number}", "x")
    (etc.path / "maven").mkdir()
    os.mkfifo(etc.path / "maven" / "fifo", 0o644)
    etc.settle("/etc/services", "/etc/perl")
    assert {etc.plan()[f"/etc/{name}"] for name in
            ("mime.types", "protocols", "groff", "xml", "maven", "alternatives")} == {"bind"}
    ran = etc.sh("wc -c < /etc/mime.types; ls /etc/xml | wc -l; "
                 "[ -p /etc/maven/fifo ] && echo fifo")
    assert ran.out.split() == [str(256 * KIB + 1), "9", "fifo"], ran


def test_the_words_of_it(etc):
    etc.settle("/etc/services", "/etc/perl")
    ran = etc.sh("cat /run/bawn/policy.txt")
    assert "copy    /etc/services\n" in ran.out, ran
    asked = subprocess.run([*etc.prefix, BAWN, "explain", *etc.place.options, "--", "true"],
                           cwd=etc.place.work, capture_output=True, text=True, timeout=LIMIT_S,
                           check=True)
    said = " ".join(asked.stdout.split())
    copied, _, rest = said.partition("copies of the host's")[2].partition("[built-in")
    assert "/etc/services" in copied and "/etc/perl" in copied and "/etc/perl" not in rest
