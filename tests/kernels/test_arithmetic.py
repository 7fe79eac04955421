"""What computes here, which outside settings decide it, and what kernels are compiled for."""

import torch

from pernn.kernels import (
    compilation,
    describe_arithmetic,
    describe_kernels,
    find_kernels,
    without_kernels,
)
from pernn.kernels.loading import VARIABLES
from pernn.lab.runs import describe_environment

CPU = torch.device("cpu")


def test_one_line_says_what_computes():
    kernels, capability = find_kernels(), torch.backends.cpu.get_cpu_capability()
    said = describe_arithmetic()
    assert said.count("\n") == 0
    if kernels is not None:
        assert kernels.instructions in ("AMX", capability) or compilation.choose_target()
        assert f"compiled kernels (PyTorch: {capability}" in said
        assert (1 in kernels.product_parts) == said.startswith("AMX")
    with without_kernels():
        assert f"no compiled kernels (PyTorch: {capability}" in describe_arithmetic()
        assert describe_kernels() in describe_arithmetic()


def test_a_run_records_the_variables_that_change_bits(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert describe_environment(CPU)["variables"] == {}
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    found = describe_environment(CPU)
    assert found["variables"] == {"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert found["arithmetic"] == describe_arithmetic()
    assert "oneDNN: at most AVX2" in found["arithmetic"]


def test_a_named_target_is_one_library_for_all_processors(monkeypatch):
    digests = set()
    for target in ("native", "x86-64-v3", "x86-64-v2"):
        monkeypatch.setenv("PERNN_KERNELS_TARGET", target)
        recipe = compilation.choose_recipe()
        assert f"-march={target}" in recipe.flags
        digests.add(recipe.digest())
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(compilation, "_processor", lambda: "another processor")
            digests.add(recipe.digest())
    # Only the native library depends on the processor.
    assert len(digests) == 4


def test_kernels_follow_what_pytorch_may_use(monkeypatch):
    monkeypatch.delenv("PERNN_KERNELS_TARGET", raising=False)
    for capability, target in (("AVX512", "native"), ("AVX2", "x86-64-v3"), ("DEFAULT", "")):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda one=capability: one)
        assert compilation.choose_target() == target
