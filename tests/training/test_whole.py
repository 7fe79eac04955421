"""Whole updates against float64, and where they are taken."""

import copy
import math
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from agreement import threads
from pairs import pairwise
from pernn.kernels import has_whole_updates, whole_updates, without_kernels
from pernn.lab.interfaces import Batch
from pernn.lab.runs import RunSpec, execute
from pernn.lab.store import RunDirectory
from pernn.lab.training import PRESETS, TrainingConfig, TrainState, advance, learning_rate
from pernn.lab.training.objective import batch_loss, show
from pernn.lab.training.update import Update
from pernn.models import PositionEncodedRNN
from training.test_loop import SPEC, start

CPU = torch.device("cpu")
TOLERANCE = 1e-5
"""Of a tensor's largest entry: what a gradient may be off; with 20,000 ids float32 needs it."""
needs_whole = pytest.mark.skipif(not has_whole_updates(CPU), reason="no whole updates here")


class Spy(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.name() == "pernn::update"
        return func(*args, **(kwargs or {}))


def begin(kind, hidden, vocab, encoding, preset="as-run", *, embedding=6, **options):
    model = PositionEncodedRNN(
        vocab, kind, encoding, embedding_size=embedding, hidden_size=hidden,
        generator=torch.Generator().manual_seed(3), **options,
    )  # fmt: skip
    state = TrainState.fresh(model, PRESETS[preset])
    config = TrainingConfig(batch_size=4, learning_rate=0.01, warmup_updates=0, iterations=100)
    return state, Update(state, config, PRESETS[preset], CPU)


def draw(vocab, batch, inputs, queries, scored, seed=0):
    source = np.random.default_rng(seed)
    tokens = source.integers(vocab, size=(batch, inputs))
    return Batch(tokens, queries, source.integers(vocab, size=(batch, scored)))


def exact(model, batch, clip_norm):
    """Return the loss, the gradients' norm and the clipped gradients, all in float64."""
    (shown,) = show(batch, CPU)
    double = copy.deepcopy(model).double()
    loss, right = batch_loss(double, shown)
    loss.backward()
    grads = {name: parameter.grad for name, parameter in double.named_parameters()}
    norm = math.sqrt(sum(float((grad**2).sum()) for grad in grads.values()))
    scale = min(1.0, (clip_norm or math.inf) / (norm + 1e-6))
    return [loss.item(), norm, right.item()], {name: scale * grads[name] for name in grads}


@needs_whole
@pairwise(
    kind=["elman", "gru", "lstm"],
    hidden=[1, 7, 65, 128],
    vocab=[2, 300, 20_000],
    encoding=["none", "sinusoidal", "random", "repeated_embedding"],
    setting=[
        # batch, inputs, queries, threads, preset
        (1, 4, 4, 1, "as-run"),
        (3, 1, 0, 1, "as-written"),
        (13, 6, 3, 2, "as-run"),
        (1, 3, 1, 2, "as-written"),
    ],
)
def test_gradients_and_sums_are_those_of_float64(kind, hidden, vocab, encoding, setting):
    batch, inputs, queries, num_threads, preset = setting
    state, update = begin(kind, hidden, vocab, encoding, preset)
    shown = draw(vocab, batch, inputs, queries, queries or inputs)
    sums, grads = exact(state.model, shown, PRESETS[preset].clip_norm)
    with threads(num_threads), Spy() as spy:
        update(shown)
    assert spy.count == 1
    # A single unit may saturate, where 1 - h² is off by up to 2⁻²² of what comes back at each step,
    # and which one does differs between processors: it is exact to that share of all gradients.
    floor = (inputs + queries) * 2**-22 * sums[1] if hidden == 1 else 1e-11
    compare(state, sums, grads, PRESETS[preset].betas[0], floor)


def compare(state, sums, grads, beta=0.9, floor=1e-11):
    """Compare what one update left behind with sums and gradients in float64."""
    np.testing.assert_allclose(state.sums.numpy(), sums, rtol=1e-5)
    for name, parameter in state.model.named_parameters():
        grad = state.optimizer.state[parameter]["exp_avg"].double() / (1 - beta)
        error = (grad - grads[name]).abs().max()
        allowed = max(floor, TOLERANCE * grads[name].abs().max())
        assert error < allowed, (name, float(error), float(allowed))


@needs_whole
@pytest.mark.parametrize(
    ("kind", "hidden", "vocab", "batch", "inputs", "queries"),
    [
        ("gru", 48, 3_000, 70, 6, 12),
        ("lstm", 65, 5_000, 40, 8, 16),
        ("elman", 17, 20_000, 30, 3, 7),
    ],
)
def test_logits_in_several_pieces(kind, hidden, vocab, batch, inputs, queries):
    """Deep products are also turned, and the memory grows after a smaller batch."""
    shown, spaces = draw(vocab, batch, inputs, queries, queries), []
    state, update = begin(kind, hidden, vocab, "sinusoidal")
    sums, grads = exact(state.model, shown, 1.0)
    update(shown)
    compare(state, sums, grads)
    for is_kept in (True, False):
        state, update = begin(kind, hidden, vocab, "sinusoidal")
        update(draw(vocab, 2, 2, 2, 2))
        update._space = update._space if is_kept else torch.empty(0)
        update(shown)
        spaces.append(state.dump())
    assert all(np.array_equal(spaces[0][name], spaces[1][name]) for name in spaces[0])


@needs_whole
def test_what_is_no_number_spreads_as_by_autograd():
    """To rows that were not shown, too: the norm of all gradients is none."""
    found = []
    for enabled in (True, False):
        state, update = begin("gru", 8, 7, "sinusoidal")
        state.model.output_layer.bias.data[3] = math.nan
        with whole_updates(enabled=enabled):
            update(draw(4, 3, 2, 2, 2))
        found.append({name: np.isnan(value) for name, value in state.weights().items()})
    assert all(found[0][name].all() and found[1][name].all() for name in found[0])


@needs_whole
def test_a_layer_without_biases_and_tokens_beyond_the_query():
    state, update = begin("gru", 20, 5, "sinusoidal", num_extra_rows=3)
    state.model.core = type(state.model.core)(12, 20, bias=False)
    state = TrainState.fresh(state.model, PRESETS["as-run"])
    update = Update(state, update.config, PRESETS["as-run"], CPU)
    batch = draw(5, 4, 6, 2, 3)
    batch.tokens[:, 0] = [5, 6, 7, 7]  # the query's row as an input, and the rows behind it
    sums, grads = exact(state.model, batch, 1.0)
    with Spy() as spy:
        update(batch)
    assert spy.count == 1
    compare(state, sums, grads, floor=0.0)


@needs_whole
@pytest.mark.parametrize("preset", PRESETS)
def test_weights_take_the_step_of_adam(preset):
    state, update = begin("lstm", 24, 9, "sinusoidal", preset)
    (one, two), eps = PRESETS[preset].betas, PRESETS[preset].epsilon
    parameters, moments = state.optimizer.parameters, state.optimizer.state
    for number in range(1, 6):
        before = [parameter.detach().double() for parameter in parameters]
        old = [
            [moments[p][key].double() if p in moments else 0.0 for key in ("exp_avg", "exp_avg_sq")]
            for p in parameters
        ]
        batch = draw(9, 4, 3, 3, 3, seed=number)
        _, grads = exact(state.model, batch, PRESETS[preset].clip_norm)
        update(batch)
        rate = learning_rate(number, update.config)
        gradients = {parameter: grads[n] for n, parameter in state.model.named_parameters()}
        for parameter, value, (first, second) in zip(parameters, before, old, strict=True):
            found, grad = moments[parameter], gradients[parameter]
            size = float(grad.abs().max())
            first = one * first + (1 - one) * grad
            second = two * second + (1 - two) * grad**2
            assert (found["exp_avg"] - first).abs().max() < 1e-5 * size
            assert (found["exp_avg_sq"] - second).abs().max() < 1e-5 * size**2
            assert found["step"].item() == number
            if number == 1:
                grad = found["exp_avg"].double() / (1 - one)
                torch.testing.assert_close(
                    found["exp_avg_sq"].double(), (1 - two) * grad**2, rtol=1e-6, atol=1e-37
                )
            # From the moments as they were rounded: where both are tiny, the step is their ratio's.
            root = (found["exp_avg_sq"].double() / (1 - two**number)).sqrt()
            expected = value - rate * found["exp_avg"].double() / (1 - one**number) / (root + eps)
            assert (parameter - expected).abs().max() < 1e-6


@needs_whole
@pytest.mark.parametrize(
    "changes",
    [
        {"training.schedule": "constant"},
        *({"training.encoding_schedule": when} for when in ("early", "late", "withdrawn")),
        {"training.optimizer": "adam_0.999"},
        {"encoding.kind": "constant"},
        {"encoding.masked": "output"},
        {"encoding.frequencies": [1.570796]},
    ],
    ids=str,
)
def test_whole_updates_are_those_of_autograd(changes):
    spec, weights = SPEC.override(changes), []
    for one, whole in ((spec, True), (spec, False), (SPEC, True)):
        trial, state = start(one)
        with Spy() as spy, whole_updates(enabled=whole):
            list(advance(state, trial.stream, one.training, trial.preset, CPU))
        assert spy.count == (12 if whole else 0)
        weights.append(state.weights())
    for name, value in weights[0].items():
        np.testing.assert_allclose(value, weights[1][name], atol=1e-5)
    # The change matters.
    assert any(np.abs(value - weights[2][name]).max() > 5e-5 for name, value in weights[0].items())


UNUSUAL = {
    "another core": {"core.kind": "s4d"},
    "two layers": {"core.num_layers": 2},
    "a wide state": {"core.hidden_size": 400},
    "an encoding that is added": {"encoding.combine": "add"},
    "a learned encoding": {"encoding.kind": "learned"},
    "rounded products": {"training.precision": "bf16"},
    "pieces": {"training.micro_batch": 4},
    "steps that are not scored": {"task.kind": "variable_length", "task.min_length": 2},
    "its own outputs": {"task.kind": "autoregressive"},
    "vectors": {"task.kind": "infinite_vocabulary"},
    "codes": {"task.kind": "coded_reversal"},
    "momentum": {"training.optimizer": "sgd"},
    "signs": {"training.optimizer": "sign"},
}


@pytest.mark.parametrize(
    "why", [*UNUSUAL, "a hook", "a frozen weight", "another class", "shared weights", "no wish"]
)
def test_everything_else_goes_through_autograd(why):
    changes = {"task.num_held_out": 8, **UNUSUAL.get(why, {})}
    spec = RunSpec.load(SPEC.dump()).override(changes)
    trial, state = start(spec)
    match why:
        case "a hook":
            trial.model.core.register_forward_hook(lambda *args: None)
        case "a frozen weight":
            trial.model.embedding.weight.requires_grad_(False)
            state = TrainState.fresh(trial.model, trial.preset)
        case "shared weights":
            trial.model.core.bias_hh_l0 = trial.model.core.bias_ih_l0
            state = TrainState.fresh(trial.model, trial.preset)
        case "another class":
            trial.model.core.__class__ = type("Mine", (type(trial.model.core),), {})
    with Spy() as spy, whole_updates(enabled=why != "no wish"):
        update = Update(state, spec.training, trial.preset, CPU)
        for step in range(2):
            update(trial.stream.train(step, 8))
    assert spy.count == 0
    assert np.isfinite(state.sums[:2].numpy()).all()


@needs_whole
def test_what_was_frozen_for_a_while_counts_its_own_steps():
    """Adam corrects each moment by its own number of steps."""
    found = []
    for enabled in (True, False):
        state, update = begin("gru", 8, 7, "sinusoidal")
        with whole_updates(enabled=enabled):
            for seed in range(4):
                state.model.core.weight_hh_l0.requires_grad_(seed > 1)
                update(draw(7, 3, 4, 4, 4, seed=seed))
        found.append(state.model.core.weight_hh_l0.detach())
    torch.testing.assert_close(*found)


@needs_whole
@pytest.mark.parametrize("change", ["a hook", "a weight's hook", "a frozen weight"])
def test_what_changes_between_updates_is_noticed(change):
    state, update = begin("gru", 8, 7, "sinusoidal")
    heard, core = [], state.model.core
    with Spy() as spy:
        update(draw(7, 3, 4, 4, 4))
        match change:
            case "a hook":
                core.register_forward_hook(lambda *args: heard.append(1))
            case "a weight's hook":
                core.weight_hh_l0.register_hook(heard.append)
            case "a frozen weight":
                core.weight_hh_l0.requires_grad_(False)
                core.weight_hh_l0.grad = torch.zeros_like(core.weight_hh_l0)
        update(draw(7, 3, 4, 4, 4, seed=1))
    assert spy.count == 1
    assert len(heard) == (change != "a frozen weight")


@needs_whole
def test_what_the_memory_held_before_does_not_matter():
    found = []
    for before in (torch.empty(0), torch.full((2**20,), math.nan)):
        state, update = begin("lstm", 19, 7, "sinusoidal")
        update._space = before
        for seed in range(3):
            update(draw(7, 3 + seed, 4, 4, 4, seed=seed))
        found.append(state.dump())
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


@needs_whole
def test_batches_that_are_cut_from_larger_ones():
    found = []
    for copies in (False, True):
        state, update = begin("gru", 16, 8, "none")
        large = draw(8, 3, 6, 0, 6)
        tokens, targets = large.tokens[:, :5], large.targets[:, 1:6]
        update(Batch(tokens.copy(), 0, targets.copy()) if copies else Batch(tokens, 0, targets))
        found.append(state.dump())
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


@needs_whole
@pytest.mark.parametrize(("tokens", "targets"), [(9, 0), (-1, 0), (0, 8), (0, -1)])
def test_an_id_that_does_not_exist_is_refused(tokens, targets):
    state, update = begin("gru", 16, 8, "none")
    batch = draw(8, 2, 3, 3, 3)
    batch.tokens[1, 2], batch.targets[1, 2] = tokens, targets
    before = state.weights()
    with pytest.raises(IndexError, match=f"{tokens or targets} is none of 0"):
        update(batch)
    assert all(np.array_equal(value, before[name]) for name, value in state.weights().items())


@pytest.mark.parametrize("begun", ["whole", "autograd"])
def test_a_run_goes_on_as_it_began_and_says_so(begun, tmp_path):
    """A run of autograd is one from before there were whole updates, or without kernels."""
    if begun == "whole" and not has_whole_updates(CPU):
        pytest.skip("no whole updates here")

    def beginning():
        return nullcontext() if begun == "whole" else without_whole_updates()

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    with beginning(), Spy() as spy:
        expected = execute(SPEC, whole, device="cpu").result
    assert spy.count == (12 if begun == "whole" else 0)
    with beginning():
        execute(SPEC, parts, device="cpu", on_update=lambda update: update < 5)
    with Spy() as spy:
        found = execute(SPEC, parts, device="cpu").result
    assert spy.count == (7 if begun == "whole" else 0)
    assert found == expected
    environment = RunDirectory(parts, SPEC.fingerprint()).read_environment()
    assert environment.get("updates") == ("whole" if begun == "whole" else None)


@contextmanager
def without_whole_updates():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pernn.lab.training.update.has_whole_updates", lambda device: False)
        yield


def test_without_kernels_there_are_none():
    with without_kernels():
        assert not has_whole_updates(CPU)
    assert not has_whole_updates(torch.device("cuda"))
