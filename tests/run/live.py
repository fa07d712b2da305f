"""What the tests of live tasks share: verbs, tasks that end with the test, and what `ps` says."""
import json
import os
import signal
import subprocess
import tempfile

import pytest

from boxed import BAWN, LIMIT_S, Place, Ran, eventually


class Live(Place):
    """A place whose tasks are ended with it."""

    def verb(self, *arguments, data=None, limit=LIMIT_S, prefix=(), **options):
        """Runs a verb with our state directory behind its first word."""
        options.setdefault("cwd", self.work)
        options.setdefault("stdin" if data is None else "input",
                           subprocess.DEVNULL if data is None else data)
        first, *rest = map(str, arguments)
        ran = subprocess.run([*prefix, BAWN, first, *self.options, *rest], check=False,
                             timeout=limit, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             **options)
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def begin(self, *options):
        """Starts a task; its id."""
        ran = self.verb("task", "start", *options)
        assert ran.status == 0 and ran.err == "", ran
        assert ran.out.startswith("t-") and ran.out.count("\n") == 1, ran
        return ran.out.strip()

    def sh_in(self, task, script, *options, **keywords):
        return self.verb("task", "exec", task, *options, "--", "sh", "-c", script, **keywords)

    def spawn(self, *arguments, **options):
        options.setdefault("cwd", self.work)
        for name in ("stdin", "stdout", "stderr"):
            options.setdefault(name, subprocess.DEVNULL if name == "stdin" else subprocess.PIPE)
        first, *rest = map(str, arguments)
        # pylint: disable-next=consider-using-with # the caller's
        return subprocess.Popen([BAWN, first, *self.options, *rest], **options)

    def tasks(self):
        ran = self.verb("ps", "--json")
        assert ran.status == 0, ran
        return json.loads(ran.out)["tasks"]

    def one(self):
        """The only task, once its supervisor answers."""
        found = []

        def answers():
            found[:] = self.tasks()
            return len(found) == 1 and found[0]["state"] != "unknown"

        assert eventually(answers), found
        return found[0]


@pytest.fixture
def live():
    made = Live(tempfile.mkdtemp(prefix="bawn-live.", dir="/var/tmp"))
    try:
        yield made
    finally:
        made.remove()


def kill_later(pid):
    """For a supervisor that a test has stopped."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
