"""Every encoding through the same invariants, then what each one promises alone."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils import prune

from pernn import PositionEncoded
from pernn.encodings import Encoding, Learned, NoEncoding, Random, Sinusoidal
from pernn.encodings.sinusoidal import LONGEST_TABLE
from pernn.errors import ConfigError
from pernn.lab.encodings import (
    ENCODINGS,
    ConstantConfig,
    LearnedConfig,
    RandomConfig,
    SinusoidalConfig,
)
from pernn.lab.runs import RunSpec

STEPS = 24
ENCODING_KINDS = [
    SinusoidalConfig(size=6),
    SinusoidalConfig(size=6, layout="interleaved"),
    LearnedConfig(size=6),
    LearnedConfig(size=6, normalize=True),
    RandomConfig(size=6),
    ConstantConfig(size=6),
]
ALL = [*ENCODING_KINDS, ENCODINGS.validate("none"), ENCODINGS.validate("repeated_embedding")]
named = {"ids": repr}


def build(config, layout="halves"):
    return config.build(STEPS, layout, torch.Generator().manual_seed(1))


def test_every_kind_is_among_those_tested():
    assert {config.kind for config in ALL} == set(ENCODINGS.names())


@pytest.mark.parametrize("config", ALL, **named)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fewer_steps_are_a_prefix(config, dtype):
    encoding = build(config).to(dtype)
    before, full = encoding(5), encoding(STEPS)
    assert torch.equal(before, full[:5])
    assert torch.equal(encoding(5), before)
    assert full.shape == (STEPS, encoding.size)
    assert full.dtype == dtype or not encoding.size
    for steps in range(STEPS):
        # A fresh module each time: a longer table must not be what makes the prefix.
        assert torch.equal(build(config).to(dtype)(steps), full[:steps])


@pytest.mark.parametrize(
    "config", [c for c in ENCODING_KINDS if c != LearnedConfig(size=6)], **named
)
def test_unit_norm_where_promised(config):
    norms = build(config)(STEPS).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones(STEPS))


def test_drawn_codes_are_distributed_as_described(generator):
    weight = Learned(512, 200, generator=generator).weight
    assert abs(weight.mean()) < 0.01
    assert abs(weight.std() - 1) < 0.01
    assert abs(weight.norm(dim=1).mean() - math.sqrt(512)) < 0.2
    encodings = Random(64, 4000, generator=generator)(4000)
    assert encodings.mean(dim=0).norm() < 0.05
    covariance = encodings.T @ encodings / 4000 * 64
    torch.testing.assert_close(covariance, torch.eye(64), atol=0.12, rtol=0)


def test_a_constant_tells_no_time():
    found = build(ConstantConfig(size=6))(STEPS)
    assert torch.equal(found, found[:1].expand_as(found))


@pytest.mark.parametrize("config", ENCODING_KINDS, **named)
@pytest.mark.parametrize("phase", ["input", "output"])
@pytest.mark.parametrize("queries", [0, 3, STEPS])
def test_a_mask_silences_its_phase_alone(config, phase, queries):
    masked = build(config.override({"masked": phase}))(STEPS, queries)
    plain = build(config)(STEPS, queries)
    boundary = STEPS - queries
    silent = slice(0, boundary) if phase == "input" else slice(boundary, STEPS)
    heard = slice(boundary, STEPS) if phase == "input" else slice(0, boundary)
    assert not masked[silent].any()
    assert torch.equal(masked[heard], plain[heard])


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_sinusoids_are_rounded_once_in_every_precision(layout):
    exact, encoding = Sinusoidal(8, layout=layout).double()(STEPS), Sinusoidal(8, layout=layout)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert torch.equal(encoding.to(dtype)(STEPS), exact.to(dtype))


@pytest.mark.parametrize("config", ENCODING_KINDS, **named)
def test_codes_may_be_changed_in_place(config):
    encoding = build(config)
    before = encoding(5).clone()
    with torch.no_grad():
        encoding(5).mul_(0.1)
        if not list(encoding.parameters()) and "weight" not in encoding.state_dict():
            encoding.vectors(5).mul_(0.1)
    assert torch.equal(encoding(5), before)


def test_a_subclass_may_change_what_it_inherits():
    class Louder(Sinusoidal):
        def vectors(self, num_steps):
            return super().vectors(num_steps).mul_(2)

    louder = Louder(4)
    for _ in range(2):
        torch.testing.assert_close(louder(3), 2 * Sinusoidal(4)(3))
        torch.testing.assert_close(louder(2, position_offset=1), 2 * Sinusoidal(4)(3)[1:])


def test_a_pruned_table_is_pruned_for_sequences_of_several_lengths():
    layer = PositionEncoded(torch.nn.GRU(8, 8, batch_first=True), Learned(4, 20))
    prune.l1_unstructured(layer.encoding, "weight", amount=0.3)
    kept = layer.encoding.weight_mask.bool()
    for _ in range(2):
        outputs, _ = layer(torch.ones(2, 5, 4), lengths=[5, 3])
        outputs.sum().backward()
    slopes = layer.encoding.weight_orig.grad
    assert not slopes[~kept].any()
    assert slopes[:5][kept[:5]].all()


@pytest.mark.parametrize("config", ENCODING_KINDS, **named)
def test_what_was_made_without_memory_is_drawn_again(config):
    encoding = build(config).to("meta").to_empty(device="cpu")
    if isinstance(encoding, Learned | Random):
        encoding.reset_parameters(torch.Generator().manual_seed(1))
    assert torch.equal(encoding(STEPS), build(config)(STEPS))


def test_inference_mode_and_fake_tensors_leave_nothing_behind():
    encoding = Sinusoidal(4)
    with torch.inference_mode():
        encoding(3)
    weight = torch.ones(2, 4, requires_grad=True)
    torch.nn.functional.linear(encoding(3), weight).sum().backward()
    assert weight.grad is not None
    encoding = Sinusoidal(4)
    with FakeTensorMode(allow_non_fake_inputs=True):
        encoding(torch.empty(2, 5, 4))
    assert torch.equal(encoding(5), Sinusoidal(4)(5))


def test_sinusoids_far_away_are_the_same_and_cost_no_table_of_what_is_between():
    encoding, whole = Sinusoidal(6), Sinusoidal(6)(LONGEST_TABLE + 9)
    assert torch.equal(encoding(5, position_offset=LONGEST_TABLE), whole[-9:-4])
    offsets = torch.tensor([LONGEST_TABLE, LONGEST_TABLE + 3])
    joined = encoding.join(torch.zeros(2, 5, 1), position_offset=offsets)
    assert torch.equal(joined[1, :, 1:], whole[-6:-1])
    assert not len(encoding._table)
    encoding(LONGEST_TABLE)
    assert len(encoding._table) == LONGEST_TABLE
    encoding, vectors = Sinusoidal(6), torch.zeros(3, 4, 1)
    offsets = torch.tensor([-2, 0, 2**31])
    found = encoding.join(vectors, position_offset=offsets, lengths=torch.tensor([4, 3, 4]))
    near = encoding.join(vectors[:2], position_offset=offsets[:2], lengths=torch.tensor([4, 3]))
    assert torch.equal(found[:2], near)
    assert torch.equal(found[2], encoding.join(vectors[2], position_offset=2**31))


@pytest.mark.gpu
@pytest.mark.parametrize("config", ENCODING_KINDS, **named)
def test_the_code_is_the_same_on_another_device(config):
    encoding = build(config)
    before = encoding(STEPS).detach().clone()
    found = encoding.cuda()(STEPS).detach().cpu()
    if getattr(config, "normalize", False):
        # The norm of a table's row is a sum, in another order there.
        torch.testing.assert_close(found, before, rtol=1e-6, atol=1e-7)
    else:
        assert torch.equal(found, before)


@given(st.integers(1, 20), st.integers(1, 30), st.sampled_from(["halves", "interleaved"]))
def test_sinusoids_equal_an_independent_loop(half, steps, layout):
    size = 2 * half
    found = Sinusoidal(size, layout=layout).double()(steps)
    for p in range(steps):
        for i in range(half):
            angle = p / 10000 ** (2 * i / size)
            sine, cosine = (i, half + i) if layout == "halves" else (2 * i, 2 * i + 1)
            scale = 1 / math.sqrt(size / 2)
            assert abs(found[p, sine] - math.sin(angle) * scale) < 1e-13
            assert abs(found[p, cosine] - math.cos(angle) * scale) < 1e-13


def test_what_an_encoding_cannot_give_or_take_is_refused():
    for config in (LearnedConfig(size=6), RandomConfig(size=6)):
        with pytest.raises(ConfigError, match="25 steps, but only 24 positions; raise num_pos"):
            build(config)(STEPS + 1)
    for config in ENCODING_KINDS:
        added = build(config.override({"combine": "add"}))
        with pytest.raises(ConfigError, match="of size 6 cannot be added to vectors of 5"):
            added.joined_size(5)
        with pytest.raises(ConfigError, match="of size 6 cannot be added to vectors of 1"):
            added(torch.zeros(2, 5, 1))  # which would be broadcast
    with pytest.raises(ConfigError, match=r"expected floating point.*got torch.int64"):
        Sinusoidal(4)(torch.ones(2, 3, 4, dtype=torch.long))
    with pytest.raises(ConfigError, match="expected an integer of at least 0, got -2"):
        NoEncoding().join(torch.zeros(1, 4, 2), position_offset=-2)
    with pytest.raises(ConfigError, match="masked='input' is invalid: a layer has no output phase"):
        PositionEncoded(torch.nn.GRU(8, 4, batch_first=True), Sinusoidal(6, masked="input"))


@pytest.mark.parametrize("config", ALL, **named)
def test_the_generator_alone_decides_what_is_trained_and_moved(config):
    state = torch.get_rng_state()
    one, other = build(config), build(config)
    assert torch.equal(one(STEPS), other(STEPS))
    assert torch.equal(torch.get_rng_state(), state)
    trained = sum(p.numel() for p in one.parameters())
    assert trained == (STEPS * 6 if config.kind == "learned" else 0)
    source = build(config)
    target = config.build(STEPS, "halves", torch.Generator().manual_seed(2))
    target.load_state_dict(source.state_dict())
    assert torch.equal(target(STEPS), source(STEPS))


class Narrow(Encoding):
    def vectors(self, num_steps: int) -> torch.Tensor:
        return torch.ones(num_steps, self.size - 1)


@pytest.mark.parametrize("offset", [2, torch.tensor([0, 3])])
def test_vectors_of_another_width_are_refused(offset: Any) -> None:
    with pytest.raises(ConfigError, match=r"Narrow: expected vectors of shape \(\d, 4\) .* 3\)$"):
        Narrow(4).join(torch.zeros(2, 5, 3), position_offset=offset)


def test_no_code_leaves_a_layer_as_it_was(generator):
    layer = torch.nn.GRU(4, 5, batch_first=True)
    vectors = torch.randn(2, 3, 4, generator=generator)
    assert torch.equal(PositionEncoded(layer, NoEncoding())(vectors)[0], layer(vectors)[0])


def test_oscillators_of_ones_own() -> None:
    plain = Sinusoidal(8).double()(STEPS)
    spaced = [10_000.0 ** (-pair / 4) for pair in range(4)]
    assert torch.allclose(Sinusoidal(frequencies=spaced).double()(STEPS), plain)
    assert torch.allclose(Sinusoidal(8, base=10_000.0).double()(STEPS), plain)
    other = Sinusoidal(8, base=100.0).double()(STEPS)
    assert torch.allclose(
        other, Sinusoidal(frequencies=[100.0 ** (-pair / 4) for pair in range(4)]).double()(STEPS)
    )
    # A quarter of a turn makes a sine a cosine, and the norm stays 1.
    turned = Sinusoidal(frequencies=[0.3, 0.1], phases=[math.pi / 2] * 2).double()(STEPS)
    assert torch.allclose(turned[:, :2], Sinusoidal(frequencies=[0.3, 0.1]).double()(STEPS)[:, 2:])
    assert torch.allclose(turned.norm(dim=1), torch.ones(STEPS, dtype=torch.float64))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 512, "frequencies": (0.1, 0.2, 0.3, 0.4)}, "expected 256 of them.*try size 8"),
        ({"frequencies": (0.1,), "phases": (0.0, 1.0)}, "phases is invalid: expected 1 of them"),
        ({"frequencies": (0.1, -0.2)}, "expected positive numbers"),
        ({"frequencies": ()}, "invalid|even"),
        ({"frequencies": (0.1,), "base": 100.0}, "base is invalid"),
        ({"size": 4, "base": 1.0}, "above 1"),
        ({"size": 1}, "size must be even"),
        ({"size": 511}, "size must be even"),
    ],
)
def test_impossible_sinusoids_are_refused(values: dict[str, Any], message: str) -> None:
    for make in (Sinusoidal, SinusoidalConfig):
        with pytest.raises((ConfigError, ValueError), match=message):
            make(**values)


def test_oscillators_in_a_spec() -> None:
    assert SinusoidalConfig(size=8).dump().keys() == {"kind", "size", "combine", "masked", "layout"}
    spec = RunSpec()
    changed = spec.override({"encoding.frequencies": [0.5, 0.25], "encoding.phases": [0, 1.5]})
    assert changed.encoding.dump()["size"] == 4
    assert RunSpec.load(changed.dump()) == changed
    assert changed.fingerprint() != spec.fingerprint()
    assert spec.has("encoding.base")
    assert not spec.override({"encoding.kind": "none"}).has("encoding.base")
    assert changed.override({"core.hidden_size": 4}).encoding == changed.encoding
    assert RunSpec.load({"encoding": {"kind": "sinusoidal", "base": 100}}).encoding.size == 512
    built = build(changed.encoding, "halves")
    assert torch.equal(built(3), Sinusoidal(frequencies=[0.5, 0.25], phases=[0.0, 1.5])(3))
