"""For all functional tests: what the helpers' assertions say, and what one caller need not run."""
import os

import pytest

# they say what they compared, as those of the tests do
pytest.register_assert_rewrite("boxed", "live", "screen", "test_faults")

# The same whoever calls, and slow: as both only in `make soak`, or asked for by name. Dealt out so
# that both suites, which run side by side, take as long; a user whose suite runs alone has all.
AS_USER = ["test_completion", "test_decide", "test_decide_corpus", "test_git_commit",
           "test_git_config", "test_git_refs", "test_policy_check", "test_policy_import",
           "test_policy_run", "test_policy_test", "test_trace_decision", "test_trace_verify",
           "test_trace_views"]
AS_ROOT = ["test_dialer", "test_progress", "test_proxy"]

if os.environ.get("BAWN_SOAK"):
    LEFT_OUT = []
elif os.geteuid() == 0:
    LEFT_OUT = AS_USER
else:
    LEFT_OUT = AS_ROOT if os.environ.get("BAWN_BESIDE_ROOT") else []
collect_ignore = [f"run/{name}.py" for name in LEFT_OUT]
