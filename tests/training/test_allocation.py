"""Freed memory stays with the process: counted by the page faults of taking it again."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from pernn.lab.training import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(2**24).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
assert keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_memory_that_was_freed_costs_no_page_faults_again():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    left, kept = map(int, done.stdout.split())
    assert kept < 100 < left
