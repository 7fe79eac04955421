"""Continuing a sequence step by step, or decoding, is the forward pass over the whole of it."""

import pytest
import torch

from models import test_laws as laws
from models.test_laws import BATCH, TIME, draw
from oracle import PlainRNN
from pairs import pairwise
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.lab.interfaces import Decoder
from pernn.models import AutoregressiveRNN, PositionEncodedRNN

PLACES = [("none", {}), ("repeated_embedding", {})] + [
    (kind, {"combine": combine})
    for kind in ("sinusoidal", "learned")
    for combine in ("concat", "add")
]


def network(core="lstm", encoding="sinusoidal"):
    source = torch.Generator().manual_seed(1)
    return PositionEncodedRNN(7, core, encoding, embedding_size=8, hidden_size=8, generator=source)


@pytest.mark.parametrize("encoding", ENCODINGS.builtin)
@pytest.mark.parametrize("core", CORES.builtin)
def test_each_token_is_the_likeliest_after_all_before_it(core, encoding):
    model = network(core, encoding)
    prompt = torch.tensor([[3, 1, 4], [1, 5, 2]])
    found = model.generate(prompt, 12, temperature=0)
    # Greedy tokens soon repeat: drawn ones go everywhere.
    drawn = model.generate(prompt, 12, generator=torch.Generator().manual_seed(2))
    logits = model(torch.cat([prompt, found], dim=1))
    assert torch.equal(logits[:, 2:-1].argmax(dim=2), found)
    whole = model(torch.cat([prompt, drawn], dim=1)).detach().double()
    chances = whole[:, 2:-1].softmax(dim=2)
    source = torch.Generator().manual_seed(2)
    again = [torch.multinomial(chances[:, step], 1, generator=source) for step in range(12)]
    assert torch.equal(torch.cat(again, dim=1), drawn)


def test_draws_follow_the_seed_and_the_temperature():
    model, prompt = network(), torch.tensor([[3]])

    def continued(seed, temperature=1.0):
        source = torch.Generator().manual_seed(seed)
        return model.generate(prompt, 64, temperature=temperature, generator=source)

    assert torch.equal(continued(1), continued(1))
    assert not torch.equal(continued(1), continued(2))
    assert torch.equal(continued(1, 1e-6), model.generate(prompt, 64, temperature=0))


def repeated(model, prompt, num_outputs):
    """Decode the slow way: every output from the first step on, by the plain path."""
    plain, logits = PlainRNN(model), None
    for count in range(1, num_outputs + 1):
        logits = plain(prompt, num_scored=count)
        prompt = torch.cat([prompt, logits[:, -1:].argmax(dim=2)], dim=1)
    return logits


def test_decoding_hears_hooks_as_a_forward_pass_does():
    model = AutoregressiveRNN(7, "gru", embedding_size=8, hidden_size=16)
    heard: list[int] = []
    model.core.register_forward_hook(lambda *args: heard.append(1))
    model.decode(torch.tensor([[1, 2, 7]]), 4)
    assert len(heard) == 4


@pairwise(core=CORES.names(), encoded=PLACES, layers=[1, 2])
@torch.no_grad()
def test_decoding_goes_on_where_the_prompt_ends(core, encoded, layers):
    encoding, place = encoded
    model = laws.build("autoregressive", core, encoding, 7, layers, **place).double()
    assert isinstance(model, Decoder)
    prompt = draw(7, BATCH, TIME + 1)
    prompt[:, -1] = 7  # DUMMY
    found = model.decode(prompt, TIME)
    torch.testing.assert_close(found, repeated(model, prompt, TIME), rtol=0, atol=1e-10)
    # Fed back as the truth, its own outputs give what they gave when they were decoded.
    tokens = torch.cat([prompt, found.argmax(dim=2)[:, :-1]], dim=1)
    torch.testing.assert_close(model(tokens, num_scored=TIME), found, rtol=0, atol=1e-10)
    torch.testing.assert_close(model.decode(prompt, 2), found[:, :2])
