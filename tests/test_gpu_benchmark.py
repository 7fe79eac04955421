"""`benchmarks/gpu.py` on a CPU: what it compares agrees, and a difference is noticed."""

import gpu
import pytest
import torch

CPU = torch.device("cpu")


def test_parity_is_found_and_its_absence_noticed(monkeypatch):
    found = gpu.compare_with_cpu(CPU, "gru", "learned", "bf16")
    assert found["largest difference"] < found["tolerance"]
    monkeypatch.setitem(gpu.TOLERANCE, "bf16", -1.0)
    with pytest.raises(AssertionError):
        gpu.compare_with_cpu(CPU, "gru", "learned", "bf16")


def test_what_fails_is_printed_and_the_rest_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "CORES", ("elman", "none such", "gru"))
    monkeypatch.setattr("sys.argv", ["gpu.py", "--device", "cpu", "--parts", "times"])
    assert gpu.main() == 1
    said = capsys.readouterr().out
    assert "| gru K=32 bf16 | " in said
    assert "2 failed\ntimes, none such K=32 bf16:\nTraceback" in said
