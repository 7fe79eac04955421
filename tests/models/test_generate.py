"""Continuing a sequence step by step is the forward pass over the whole of it."""

import pytest
import torch

from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.models import PositionEncodedRNN

SIZES = {"embedding_size": 8, "hidden_size": 8}


def network(core="lstm", encoding="sinusoidal"):
    source = torch.Generator().manual_seed(1)
    return PositionEncodedRNN(7, core, encoding, **SIZES, generator=source)


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


def test_a_row_that_begins_a_text_may_come_first():
    model = network()
    begin = torch.tensor([[7]])
    found = model.generate(begin, 5, temperature=0)
    states = model.states(torch.cat([begin, found], dim=1))
    assert torch.equal(model.output_layer(states)[:, :-1].argmax(dim=2), found)


def test_draws_follow_the_seed_and_the_temperature():
    model, prompt = network(), torch.tensor([[3]])

    def draw(seed, temperature=1.0):
        source = torch.Generator().manual_seed(seed)
        return model.generate(prompt, 64, temperature=temperature, generator=source)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    assert torch.equal(draw(1, 1e-6), model.generate(prompt, 64, temperature=0))
