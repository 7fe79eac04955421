"""The network that is given codes, against one that is given everything in one vector."""

import torch

from oracle import plain_core
from pairs import pairwise
from pernn.lab.cores import CORES
from pernn.lab.interfaces import SequenceModel
from pernn.models import CodedRNN

VOCAB, WIDTH, CODE, STEPS = 5, 6, 4, 7


def build(core="lstm", encoding="none"):
    return CodedRNN(
        VOCAB,
        core,
        encoding,
        embedding_size=WIDTH,
        hidden_size=8,
        phase_size=CODE,
        generator=torch.Generator().manual_seed(1),
    )


def draw(dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(VOCAB + 1, (3, STEPS, 1), generator=generator)
    return torch.cat([ids, torch.randn(3, STEPS, CODE, generator=generator)], dim=2).to(dtype)


def plain(model, tokens):
    vectors = model.encoding.join(model.embedding(tokens[..., 0].long()))
    outputs, _ = plain_core(model.core)(torch.cat([vectors, tokens[..., 1:]], dim=2))
    return model.output_layer(outputs)[:, -3:]


@pairwise(core=CORES.names(), encoding=["none", "sinusoidal", "repeated_embedding"])
def test_the_folded_path_equals_the_plain_one(core, encoding):
    model, tokens = build(core, encoding).double(), draw(torch.float64)
    assert isinstance(model, SequenceModel)
    torch.testing.assert_close(model(tokens, num_scored=3), plain(model, tokens))


def test_codes_reach_the_gradients():
    model = build()
    model(draw(), num_scored=3).sum().backward()
    assert model.core.weight("ih", 0).grad[:, WIDTH:].abs().min() > 0
