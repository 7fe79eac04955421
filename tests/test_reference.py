"""The Transformer that recurrent networks are compared with."""

import pytest
import torch

from drawn import draw
from pernn.analysis import jacobian
from pernn.cores import Adapted
from pernn.errors import ConfigError
from pernn.lab.cores import CORES
from pernn.lab.reference import TransformerConfig


def build(num_layers=2, num_heads=2, seed=1):
    config = TransformerConfig(hidden_size=8, num_layers=num_layers, num_heads=num_heads)
    return config.build(3, torch.Generator().manual_seed(seed)).double()


def test_a_spec_names_it():
    kind = "pernn.lab.reference:TransformerConfig"
    assert CORES.validate({"kind": kind, "hidden_size": 8}).num_heads == 4
    with pytest.raises(ConfigError, match="expected a divisor of hidden_size = 8, got 3"):
        build(num_heads=3)


@pytest.mark.parametrize("cuts", [[1] * 6, [4, 2]], ids=["steps", "chunks"])
def test_chunks_equal_the_whole(cuts):
    network, inputs = build(), draw(2, 6, 3)
    outputs, state = network(inputs)
    parts, known = [], None
    for part in inputs.split(cuts, dim=1):
        found, known = network(part, known)
        parts.append(found)
    torch.testing.assert_close(torch.cat(parts, 1), outputs, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(known, state, rtol=1e-11, atol=1e-12)


def test_a_block_is_that_of_pytorch():
    network = build(num_layers=1)
    block = network.blocks[0]
    twin = torch.nn.TransformerEncoderLayer(
        8, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    pairs = (
        ("self_attn.in_proj_", block.enter),
        ("self_attn.out_proj.", block.leave),
        ("linear1.", block.widen),
        ("linear2.", block.narrow),
    )
    known = {f"{name}{of}": getattr(ours, of) for name, ours in pairs for of in ("weight", "bias")}
    assert twin.load_state_dict(known, strict=False).unexpected_keys == []
    inputs = draw(2, 6, 3)
    entered = network.enter(inputs)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.float64)
    expected = network.after(twin(entered, src_mask=mask, is_causal=True))
    torch.testing.assert_close(network(inputs)[0], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("num_outputs", [-1, 0, 6])
def test_a_wrapped_layer_gives_no_other_number_of_outputs(num_outputs):
    core = Adapted(build(num_layers=1))
    with pytest.raises(ConfigError, match="num_outputs must lie in 1 … 5 steps"):
        core(draw(2, 5, 3), num_outputs=num_outputs)


def test_its_jacobian_is_autograds_and_its_weights_are_those_of_the_generator():
    core = Adapted(build(num_layers=1))
    inputs = draw(2, 5, 3)
    found = jacobian(core, core.project(inputs), source=2, target=5)
    assert found.shape == (2, 8, 2 * 2 * 8)
    assert found.isfinite().all()
    assert found.abs().max() > 0
    one, same, other = build(), build(), build(seed=2)
    equal = [torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True)]
    assert all(equal)
    assert not torch.equal(one.enter.weight, other.enter.weight)
