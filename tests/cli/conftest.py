"""One finished sweep for all tests of commands that read one."""

import pytest

from cli.tiny import tiny_run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A results directory with a finished sweep: whoever changes it must take a copy."""
    root = tmp_path_factory.mktemp("cli") / "results"
    done = tiny_run(root)
    assert done.returncode == 0, done.stderr
    assert "[5/5] finished" in done.stderr
    return root
