"""Freed memory stays with the process: counted by the page faults of taking it again."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, torch
from pernn.training import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(2**24).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_memory_that_was_freed_costs_no_page_faults_again():
    counts = {
        mode: int(
            subprocess.run(
                [sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True
            ).stdout
        )
        for mode in ("leave", "keep")
    }
    assert counts["keep"] < 100 < counts["leave"]
