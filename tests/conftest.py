"""For all functional tests: what the helpers' assertions say, and what root need not run."""
import os

import pytest

# they say what they compared, as those of the tests do
pytest.register_assert_rewrite("boxed", "live", "screen", "test_faults")

# The same whoever calls, and slow: as root only in `make soak`, or asked for by name.
collect_ignore = ["run/test_completion.py", "run/test_decide.py", "run/test_decide_corpus.py",
                  "run/test_git_commit.py", "run/test_git_config.py", "run/test_policy_check.py",
                  "run/test_policy_import.py", "run/test_progress.py", "run/test_trace_verify.py",
                  "run/test_trace_views.py"] \
    if os.geteuid() == 0 and not os.environ.get("BAWN_SOAK") else []
