"""bawn on a host of the test's own making: another /etc, another home, in a mount namespace.

Where policies come from cannot be pointed elsewhere by any option or variable, so what is there is
changed: an overlay on /etc has managed policies, and a passwd(5) in which the caller's home is a
directory of the test (seen at HOME there). An ordinary user is root of a user namespace there.
"""
import os
import subprocess

from boxed import BAWN, IS_ROOT

SET_UP = r"""
set -e
top=$1 extra=$2; shift 2
mount -t tmpfs tmpfs "$top"
mkdir "$top/upper" "$top/work"
cp -a "$top.etc/." "$top/upper/"
mount --bind "$top.home" /srv
mount -t tmpfs -o mode=0755 tmpfs /var/cache
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$top/upper,workdir=$top/work" /etc
eval "$extra"
exec "$@"
"""


HOME = "/srv"
STORE = HOME + "/.config/bawn"


class Hosted:
    """Policies of a host around a `Place`."""

    def __init__(self, place):
        self.place = place
        self.etc = place.base / "top.etc"
        self.home = place.base / "top.home"
        self.store = self.home / ".config" / "bawn"
        self.managed = self.etc / "bawn" / "policy.d"
        (place.base / "top").mkdir()
        self.etc.mkdir(mode=0o755)
        self.home.mkdir(mode=0o700)
        (self.etc / "passwd").write_text("tester:x:0:0::%s:/bin/sh\n" % HOME)

    def write(self, path, text):
        for folder in reversed(path.parents):
            folder.mkdir(mode=0o755, exist_ok=True)
        path.write_text("version: 1\n" + text)
        path.chmod(0o644)
        return path

    def manage(self, text, name="10-site.yaml"):
        self.write(self.managed / name, text)
        return f"/etc/bawn/policy.d/{name}"

    def keep(self, text, name="policy.yaml"):
        self.write(self.store / name, text)
        return f"{STORE}/{name}"

    def bawn(self, verb, *arguments, extra="", cwd=None, **options):
        """`extra` is shell text that runs as root there, before bawn does."""
        state = self.place.options if verb != "policy adopt" else []
        options.setdefault("timeout", 40)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            ["unshare", "-m" if IS_ROOT else "-Urm", "sh", "-c", SET_UP, "sh",
             str(self.place.base / "top"), extra, BAWN, *verb.split(), *state,
             *map(str, arguments)],
            capture_output=True, text=True, cwd=cwd or self.place.work, check=False,
            env={**os.environ, **options.pop("env", {})}, **options)

    def run(self, *arguments, **options):
        return self.bawn("run", *arguments, **options)
