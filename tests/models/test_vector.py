"""The network for vectors: against the plain path, and what its query is."""

from itertools import product

import pytest
import torch
from torch.nn import functional as F

from agreement import assert_agree, assert_as_exact
from pairs import pairwise
from pernn.errors import ConfigError
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.models import PlainRNN, VectorRNN

DIMENSION, WIDTH, HIDDEN, BATCH, TIME, QUERIES = 3, 6, 5, 2, 4, 3
ENCODED = [("none", {}), ("repeated_embedding", {})] + [
    (kind, {"combine": combine, "masked": masked})
    for kind, combine, masked in product(
        ("sinusoidal", "learned", "random"), ("concat", "add"), (None, "input", "output")
    )
]


def build(core="lstm", encoding="sinusoidal", layers=1, **place):
    generator = torch.Generator().manual_seed(1)
    size = {} if encoding in ("none", "repeated_embedding") else {"size": WIDTH}
    code = ENCODINGS.validate({"kind": encoding, **size, **place})
    code = code.build(TIME + QUERIES, "halves", generator)
    sizes = CORES.validate({"kind": core, "hidden_size": HIDDEN, "num_layers": layers})
    return VectorRNN(
        DIMENSION,
        sizes.build(code.joined_size(WIDTH), generator),
        code,
        embedding_size=WIDTH,
        generator=generator,
    )


def draw(num_steps, dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    # The same numbers in both types: of a float32 network the exact gradients are asked for too.
    return F.normalize(torch.randn(BATCH, num_steps, DIMENSION, generator=generator), dim=2).to(
        dtype
    )


def measured(model, dtype):
    outputs = model(draw(TIME, dtype), QUERIES)
    loss = (1 - F.cosine_similarity(outputs, draw(QUERIES, dtype), dim=2)).mean()
    loss.backward()
    gradients = {name.replace("core.", ""): p.grad for name, p in model.named_parameters()}
    return {"outputs": outputs, "loss": loss, **gradients}


@pairwise(core=CORES.names(), encoded=ENCODED, layers=[1, 2], dtype=[torch.float64, torch.float32])
def test_the_folded_path_equals_the_plain_one(core, encoded, layers, dtype):
    (encoding, place), tolerance = encoded, 1e-10 if dtype == torch.float64 else 2e-5
    model = build(core, encoding, layers, **place).to(dtype)
    found, expected = (measured(m, dtype) for m in (model, PlainRNN(model)))
    if core == "gated_delta" and dtype == torch.float32:
        exact = measured(PlainRNN(model).double(), torch.float64)
        assert_as_exact(found, expected, exact, tolerance)
    else:
        assert_agree(found, expected, tolerance, cancelling=10)


def test_the_query_is_the_zero_vector():
    model = build().double()
    vectors = draw(TIME)
    zeros = vectors.new_zeros(BATCH, QUERIES, DIMENSION)
    shown = model(torch.cat([vectors, zeros], dim=1), num_scored=QUERIES)
    torch.testing.assert_close(model(vectors, QUERIES), shown)


@pytest.mark.parametrize("num_scored", [None, 1, 6])
def test_which_steps_are_scored(num_scored):
    model = build().double()
    every = model(draw(TIME), QUERIES, num_scored=TIME + QUERIES)
    found = model(draw(TIME), QUERIES, num_scored=num_scored)
    torch.testing.assert_close(found, every[:, -(num_scored or QUERIES) :])


@pytest.mark.parametrize(
    ("encoding", "columns"), [("none", 16), ("sinusoidal", 32), ("repeated_embedding", 32)]
)
def test_parameters_are_two_linear_maps_and_a_core(encoding, columns):
    model = VectorRNN(8, "gru", encoding, embedding_size=16, hidden_size=10)
    core = 3 * 10 * (columns + 10 + 2)
    assert model.num_parameters == (8 * 16 + 16) + core + (10 * 8 + 8)


def test_the_generator_alone_decides_the_weights():
    state = torch.get_rng_state()
    one, same = build(encoding="learned"), build(encoding="learned")
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in one.state_dict().items():
        assert torch.equal(value, same.state_dict()[name]), name
    bound = DIMENSION**-0.5
    assert 0 < one.embedding.weight.abs().max() <= bound
    assert 0 < one.embedding.bias.abs().max() <= bound


def test_vectors_without_components_are_refused():
    with pytest.raises(ConfigError, match="at least one component, got 0"):
        VectorRNN(0)
