"""Every network through the same invariants, against its plain twin: concatenate, all logits."""

from itertools import product

import pytest
import torch
from torch.nn import functional as F

from agreement import assert_agree, assert_as_exact
from oracle import PlainRNN
from pairs import pairwise
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.models import AutoregressiveRNN, CodedRNN, PositionEncodedRNN, VectorRNN

WIDTH, PHASE, HIDDEN, BATCH, TIME, QUERIES = 6, 4, 5, 3, 4, 3
NETWORKS = {
    "queried": PositionEncodedRNN,
    "more rows": PositionEncodedRNN,
    "no rows": PositionEncodedRNN,
    "vector": VectorRNN,
    "autoregressive": AutoregressiveRNN,
    "coded": CodedRNN,
}
OPTIONS = {
    "more rows": {"num_extra_rows": 3},
    "no rows": {"num_extra_rows": 0},
    "autoregressive": {"phase_size": PHASE},
    "coded": {"phase_size": PHASE},
}
UNSIZED = ("none", "repeated_embedding")
PLACES = [
    {"combine": combine, "masked": masked}
    for combine, masked in product(["concat", "add"], [None, "input", "output"])
]
ENCODED = [
    (kind, place) for kind in ENCODINGS.names() for place in ([{}] if kind in UNSIZED else PLACES)
]
CASES = [
    (network, kind, place)
    for network in NETWORKS
    for kind, place in ENCODED
    # Without queries there is no phase to be masked.
    if network != "autoregressive" or not place.get("masked")
    if network in ("queried", "vector", "autoregressive") or place in ({}, PLACES[0])
]


def build(
    network="queried",
    core="lstm",
    encoding="sinusoidal",
    vocab_size=7,
    layers=1,
    hidden=HIDDEN,
    **place,
):
    generator = torch.Generator().manual_seed(1)
    size = {} if encoding in UNSIZED else {"size": WIDTH}
    code = ENCODINGS.validate({"kind": encoding, **size, **place})
    code = code.build(2 * TIME, "halves", generator)
    options = OPTIONS.get(network, {})
    sizes = CORES.validate({"kind": core, "hidden_size": hidden, "num_layers": layers})
    return NETWORKS[network](
        vocab_size,
        sizes.build(code.joined_size(WIDTH) + options.get("phase_size", 0), generator),
        code,
        embedding_size=WIDTH,
        generator=generator,
        **options,
    )


def draw(vocab_size, *shape, seed=2):
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed))


def vectors(size, num_steps):
    drawn = torch.randn(BATCH, num_steps, size, generator=torch.Generator().manual_seed(2))
    return F.normalize(drawn, dim=2)


def shown(network, vocab_size, dtype=torch.float64):
    if network == "autoregressive":
        tokens = draw(vocab_size, BATCH, 2 * TIME)
        tokens[:, TIME] = vocab_size  # DUMMY
        return tokens, {"num_scored": TIME}
    # The same numbers in both types: of a float32 network the exact gradients are asked for too.
    if network == "vector":
        return vectors(vocab_size, TIME).to(dtype), {"num_queries": QUERIES}
    if network == "coded":
        ids = draw(vocab_size + 1, BATCH, TIME, 1)
        return torch.cat([ids, vectors(PHASE, TIME)], dim=2).to(dtype), {"num_scored": QUERIES}
    tokens = draw(vocab_size, BATCH, TIME)
    if network == "more rows":
        tokens[:, 1:3] = torch.tensor([vocab_size + 1, vocab_size + 2])
    return tokens, {"num_queries": 0 if network == "no rows" else QUERIES}


def measured(network, model, vocab_size, dtype=torch.float64):
    tokens, options = shown(network, vocab_size, dtype)
    outputs = model(tokens, **options)
    num_targets = outputs.shape[1]
    if network == "vector":
        targets = vectors(vocab_size, num_targets).to(dtype)
        loss = (1 - F.cosine_similarity(outputs, targets, dim=2)).mean()
    else:
        targets = draw(vocab_size, BATCH, num_targets, seed=3)
        loss = F.cross_entropy(outputs.flatten(0, 1), targets.flatten())
    loss.backward()
    gradients = {name.replace("core.", ""): p.grad for name, p in model.named_parameters()}
    return {"outputs": outputs, "loss": loss, **gradients}


def rounding(model, seed):
    """Return a plain float64 twin whose weights are off by up to half a float32 digit."""
    twin = PlainRNN(model).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in twin.parameters():
            weight *= 1 + 2**-24 * (2 * torch.rand(weight.shape, generator=generator) - 1)
    return twin


@pairwise(
    case=CASES,
    core=CORES.names(),
    layers=[1, 2],
    # Twelve tokens a batch or more: of 7 ids every row is projected, of 50 only those that occur.
    vocab_size=[7, 50],
    # Compiled kernels take states of sixteens, in float32.
    way=["float64", "float32", "compiled"],
)
def test_the_folded_path_equals_the_plain_one(case, core, layers, vocab_size, way):
    network, encoding, place = case
    dtype = torch.float64 if way == "float64" else torch.float32
    place = place | {"hidden": 16 if way == "compiled" else HIDDEN}
    tolerance = 1e-10 if dtype == torch.float64 else 2e-5 if network == "vector" else 1e-5
    model = build(network, core, encoding, vocab_size, layers, **place).to(dtype)
    found, expected = (measured(network, m, vocab_size, dtype) for m in (model, PlainRNN(model)))
    if core == "gated_delta" and dtype == torch.float32:
        exact = measured(network, PlainRNN(model).double(), vocab_size)
        rounded = [measured(network, rounding(model, seed), vocab_size) for seed in range(4)]
        assert_as_exact(found, [expected, *rounded], exact, tolerance)
    else:
        assert_agree(found, expected, tolerance, cancelling=10 if network == "vector" else 5)


@pytest.mark.parametrize("network", ["queried", "vector"])
@pytest.mark.parametrize("num_queries", [0, 3])
@pytest.mark.parametrize("num_scored", [None, 1, 4])
def test_which_steps_are_scored(network, num_queries, num_scored):
    model = build(network).double()
    tokens, _ = shown(network, 7)
    every = PlainRNN(model)(tokens, num_queries, num_scored=TIME + num_queries)
    wanted = num_scored or num_queries or TIME
    for one in (model, PlainRNN(model)):
        outputs = one(tokens, num_queries, num_scored=num_scored)
        assert outputs.shape == (BATCH, wanted, 7)
        torch.testing.assert_close(outputs, every[:, -wanted:])


@pytest.mark.parametrize("network", ["queried", "vector", "autoregressive"])
def test_the_generator_alone_decides_the_weights(network):
    state = torch.get_rng_state()
    one, same = (build(network, encoding="learned") for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in one.state_dict().items():
        assert torch.equal(value, same.state_dict()[name]), name
