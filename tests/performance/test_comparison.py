"""The scripts compute what we compute, the phases are an update, and what is counted adds up."""

import json
import statistics
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from command_line import call
from pernn.errors import ConfigError
from pernn.kernels import (
    describe_arithmetic,
    describe_kernels,
    product,
    without_kernels,
)
from pernn.models import PlainRNN
from pernn.performance import (
    PHASES,
    SHAPES,
    Ceilings,
    class_table,
    compare,
    make_spec,
    measure_ceilings,
)
from pernn.performance.baselines import Samples, ScriptedNetwork, good_update, usual_update
from pernn.performance.ceilings import best_time, register_rates
from pernn.performance.phases import Stopwatch, limits
from pernn.performance.processor_classes import CLASSES
from pernn.performance.processors import measure_class
from pernn.performance.work import estimate_work
from pernn.runs import RunSpec, build
from pernn.training import TrainState
from pernn.training.objective import DeviceBatch, batch_loss
from pernn.training.update import Update

CPU = torch.device("cpu")
SHAPE = (16, 6, 5, 9)
CORES = ("elman", "gru", "lstm", "s4d")
CEILINGS = Ceilings(
    fp32=1e11, bf16=4e11, tf32=0.0, bandwidth=1e10, threads=1, device="cpu", bound="library"
)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("encoding", ["sinusoidal", "none", "repeated_embedding", "learned"])
def test_a_script_computes_what_we_do(core, encoding):
    trial = build(make_spec(core, SHAPE, encoding=encoding), CPU)
    batch = trial.stream.train(0, 6)
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    script = ScriptedNetwork(trial.model, 10, 5)
    loss, _ = batch_loss(trial.model, DeviceBatch(tokens, targets, 5, 5))
    for all_logits in (True, False):
        logits = script(tokens, all_logits=all_logits)
        torch.testing.assert_close(logits, PlainRNN(trial.model)(tokens, 5), rtol=1e-4, atol=1e-5)
        expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [good_update, usual_update])
def test_scripts_learn(make):
    trial = build(make_spec("gru", SHAPE), CPU)
    update = make(trial, 32, CPU)
    losses = [float(update()) for _ in range(80)]
    assert sum(losses[-5:]) < 0.99 * sum(losses[:5])


def test_scripts_are_for_one_task():
    spec = RunSpec.load({"task": {"kind": "copying_memory", "hold_time": 3}})
    trial = build(spec.override({"core.hidden_size": 4}), CPU)
    with pytest.raises(ConfigError, match="reverse sequences"):
        good_update(trial, 2, CPU)


def test_held_out_samples_are_drawn_again():
    held_out = {(0,), (1,)}
    shown = iter(Samples(3, 1, held_out))
    assert {tuple(next(shown)[0].tolist()) for _ in range(20)} == {(2,)}


@pytest.mark.parametrize("core", CORES)
def test_the_phases_together_are_an_update(core):
    spec = make_spec(core, SHAPE)
    states = []
    for cut in (True, False):
        trial = build(spec, CPU)
        state = TrainState.fresh(trial.model, trial.preset)
        for group in state.optimizer.param_groups:
            group["lr"] = 0.01
        watch = Stopwatch(spec, trial, state, CPU)
        if cut:
            seconds = watch.lap()
            assert tuple(seconds) == PHASES
            assert all(value > 0 for value in seconds.values())
        else:
            update = Update(state, spec.training, trial.preset, CPU)
            update.count = lambda: None
            update(trial.stream.train(0, spec.training.batch_size))
        states.append(state)
    for one, other in zip(states[0].model.parameters(), states[1].model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_the_least_work_is_counted_by_hand():
    spec = make_spec("lstm", (512, 64, 64, 256))
    work = estimate_work(spec)
    gates = 4 * 512
    assert work.operations["recurrence"] == 6 * 64 * 128 * 512 * gates
    assert work.operations["output_layer"] == 6 * 64 * 64 * 512 * 256
    # 257 rows of the embedding, 128 encodings.
    assert work.operations["projection"] == 6 * (257 + 128) * 512 * gates
    assert set(work.operations) == set(work.num_bytes) == set(PHASES)
    operations, num_bytes, seconds = limits(spec, CEILINGS)["recurrence"]
    assert seconds == pytest.approx(operations / 1e11)
    assert num_bytes > 0
    # A state-space layer has one product, at the scored steps.
    plain = estimate_work(make_spec("s4d", (512, 64, 64, 256)))
    assert plain.operations["recurrence"] == 6 * 64 * 64 * 512 * 2 * 512
    # More ids than tokens: only the tokens' vectors are projected.
    many = estimate_work(make_spec("lstm", (512, 64, 64, 16_384)))
    assert many.operations["projection"] == 6 * (64 * 64 + 128) * 512 * gates


def test_a_comparison_has_everything_that_is_reported():
    found = compare(make_spec("gru", SHAPE), CEILINGS, CPU, rounds=2)
    assert set(found.seconds) == {"ours", "good", "usual"}
    assert set(found.ratios) == {"good", "usual"}
    assert [phase.name for phase in found.phases] == list(PHASES)
    plain = json.loads(json.dumps(found.dump()))
    assert plain["phases"][1]["share_of_limit"] > 0
    assert not plain["mebibytes"]
    for name, value in found.seconds.items():
        low, high = found.quartiles[name]
        assert 0 < low <= value <= high


def test_ceilings_are_rates_of_this_machine():
    found = measure_ceilings(CPU, trials=1)
    assert 1e8 < found.fp32 < 1e14
    assert 1e7 < found.bandwidth < 1e13
    assert found.threads == torch.get_num_threads()


def test_no_product_is_faster_than_registers_alone():
    if not register_rates()[0]:
        pytest.skip("no kernels here, or none with a loop on registers (below AVX2)")
    left, right = (torch.randn(384, 384) for _ in range(2))
    out = torch.empty(384, 384)
    ceilings, fastest = measure_ceilings(CPU, trials=1), 0.0
    for _ in range(20):
        ceilings = ceilings.raised()
        seconds = best_time(lambda: product(left, right, out), CPU, 2)
        fastest = max(fastest, 2 * 384**3 / seconds)
    assert ceilings.bound == "registers"
    assert fastest < ceilings.fp32 <= ceilings.bf16


def test_without_kernels_the_ceiling_is_called_the_librarys():
    with without_kernels():
        found = measure_ceilings(CPU, trials=1)
        assert found.bound == "library"
        assert found.raised() == found


def test_a_class_that_cannot_be_imitated_says_so(monkeypatch):
    # What the process would print is what it finds here; the next test starts one.
    head = json.dumps({"kernels": describe_kernels(), "arithmetic": describe_arithmetic()})
    done = subprocess.CompletedProcess([], 0, f"{head}\n", "")
    monkeypatch.setattr("pernn.performance.processors.subprocess.run", lambda *_, **__: done)
    monkeypatch.setitem(CLASSES, "no-compiler", replace(CLASSES["no-compiler"], arithmetic="RVV *"))
    found = measure_class("no-compiler", [make_spec("gru", SHAPE)], threads=1, rounds=1)
    assert found.problem == "cannot be imitated here"
    assert not found.ratios
    assert class_table(["one"], [found]).endswith("no compiler: cannot be imitated here")


def test_a_class_is_measured_in_a_process_of_its_own():
    found = measure_class("no-compiler", [make_spec("gru", SHAPE)], threads=1, rounds=2)
    assert not found.problem
    assert found.kernels == "torch (PERNN_KERNELS=off)"
    (ratios,) = found.ratios
    assert len(ratios) >= 2
    table = class_table(["tiny"], [found])
    assert f"{statistics.median(ratios):.2f} ({min(ratios):.2f}" in table
    assert "| (b) / ours | no compiler |" in table


def bench(*words):
    return subprocess.run(
        [sys.executable, "-m", "pernn", "bench", *words],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_verb_prints_json_and_tables():
    words = ["--shape", "16,4,3,5", "--core", "gru", "--rounds", "1", "--threads", "1"]
    done = bench(*words, "--memory", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    (case,) = content["cases"]
    assert set(case["mebibytes"]) == {"ours", "good", "usual"}
    assert case["name"] == "gru H 16 B 4 L 3 K 5"
    assert content["ceilings"]["threads"] == 1
    shown = bench(*words, "--phases", "--no-scripts").stdout
    assert "recurrence" in shown


def test_the_verb_refuses_what_is_no_shape():
    done = call("bench", "--shape", "16,4,3")
    assert done.returncode == 2
    assert "four whole numbers H,B,L,K" in done.stderr
    assert len(SHAPES) == 5
