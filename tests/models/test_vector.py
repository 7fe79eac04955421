"""The network for vectors: what its query is, and its weights."""

import pytest
import torch

from models.test_laws import BATCH, QUERIES, TIME, build, vectors
from pernn.models import VectorRNN

DIMENSION = 3


def test_the_query_is_the_zero_vector():
    model = build("vector", vocab_size=DIMENSION).double()
    given = vectors(DIMENSION, TIME)
    zeros = given.new_zeros(BATCH, QUERIES, DIMENSION)
    shown = model(torch.cat([given, zeros], dim=1), num_scored=QUERIES)
    torch.testing.assert_close(model(given, QUERIES), shown)


def test_the_first_map_is_drawn_as_pytorch_draws():
    model, bound = build("vector", vocab_size=DIMENSION), DIMENSION**-0.5
    assert 0 < model.embedding.weight.abs().max() <= bound
    assert 0 < model.embedding.bias.abs().max() <= bound


@pytest.mark.parametrize(
    ("encoding", "columns"), [("none", 16), ("sinusoidal", 32), ("repeated_embedding", 32)]
)
def test_parameters_are_two_linear_maps_and_a_core(encoding, columns):
    model = VectorRNN(8, "gru", encoding, embedding_size=16, hidden_size=10)
    core = 3 * 10 * (columns + 10 + 2)
    assert model.num_parameters == (8 * 16 + 16) + core + (10 * 8 + 8)
