"""What a network cannot read or PyTorch cannot reach into is named in a line of ours."""

import pytest
import torch

from pernn import LSTM, S4D, PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.errors import ConfigError
from pernn.kernels import rounding_products
from pernn.models import AutoregressiveRNN, CodedRNN, VectorRNN

CORES = ["elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta"]


def network(core="lstm", **options):
    return PositionEncodedRNN(16, core, hidden_size=16, **options)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (torch.rand(2, 5), r"got torch\.float32 of shape \(2, 5\)"),
        (torch.rand(5), r"got torch\.float32 of shape \(5,\)"),
        (torch.zeros(2, 5, dtype=torch.bool), r"got torch\.bool of shape \(2, 5\)"),
        (torch.tensor(3), r"got torch\.int64 of shape \(\)"),
        (torch.zeros(2, 3, 5, dtype=torch.long), r"got torch\.int64 of shape \(2, 3, 5\)"),
        (torch.tensor([[3, 40]]), r"ids must lie in 0 … 15 \(16 is the query\), got 40"),
        (torch.tensor([3, 40]), r"ids must lie in 0 … 15 \(16 is the query\), got 40"),
        (torch.tensor([[3, -1]]), r"ids must lie in 0 … 15 \(16 is the query\), got -1"),
        (torch.tensor([[3, 16]]), r"shape \(1, 2\): ids .* 15 \(16 is the query\), got 16; num_q"),
        (torch.tensor([16, 3, 1]), r"shape \(3,\): ids .* 15 \(16 is the query\), got 16; num_q"),
    ],
)
def test_ids_that_are_none_are_named_with_the_users_shape(tokens, said):
    with pytest.raises(ConfigError, match=said):
        network()(tokens)


def test_rows_after_the_query_are_tokens_of_a_task():
    several = network(num_extra_rows=3)
    assert several(torch.tensor([[17, 18]])).shape == (1, 2, 16)
    with pytest.raises(ConfigError, match=r"0 … 15 or 17 … 18 \(16 is the query\), got 16"):
        several(torch.tensor([[18, 16, 3]]))
    with pytest.raises(ConfigError, match=r"0 … 15, got 16"):
        network(num_extra_rows=0)(torch.tensor([[16]]))


def test_what_is_fed_its_outputs_is_shown_its_first_sign():
    model = AutoregressiveRNN(16, "gru", hidden_size=16)
    assert model(torch.tensor([[3, 16, 3]]), num_scored=2).shape == (1, 2, 16)
    with pytest.raises(ConfigError, match=r"0 … 15 or 16 … 16, got 17"):
        model(torch.tensor([[3, 17, 3]]), num_scored=2)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (torch.tensor([[3, 40]]), r"ids must lie in 0 … 1[56]"),
        (torch.tensor([[True, False]]), r"got torch\.bool of shape \(1, 2\)"),
        (torch.rand(1, 2), r"got torch\.float32 of shape \(1, 2\)"),
        (torch.tensor([3, 4]), r"prompt is .*\(batch, time\).* got .*\(2,\)"),
    ],
)
def test_what_is_to_be_continued_is_ids_too(prompt, said):
    for go_on in (network().generate, AutoregressiveRNN(16, "gru", hidden_size=16).decode):
        with pytest.raises(ConfigError, match=said):
            go_on(prompt, 2)
    with pytest.raises(ConfigError, match=r"0 … 15$"):
        network(num_extra_rows=0).generate(torch.tensor([[16]]), 2)
    assert network().generate(torch.tensor([[16, 3]]), 2).shape == (1, 2)  # begins a text


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (VectorRNN(3, "gru", hidden_size=8), torch.zeros(1, 4, 5), r"\(batch, time, 3\).*4, 5\)"),
        (VectorRNN(3, "gru", hidden_size=8), torch.zeros(3), r"expected vectors .*\(3,\)"),
        (
            CodedRNN(16, "gru", hidden_size=8, phase_size=4),
            torch.full((2, 6, 5), 3.5),
            "whole numbers",
        ),
    ],
)
def test_vectors_that_are_none_of_a_networks_are_named(model, given, said):
    with pytest.raises(ConfigError, match=said):
        model(given)


@pytest.mark.parametrize("core", CORES)
def test_nothing_scored_gives_no_rows_under_rounding_too(core):
    tokens, nothing = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.bool)
    for rounds in (False, True):
        with rounding_products(rounds=rounds):
            assert network(core)(tokens, scored=nothing).shape == (0, 16)


def test_an_offset_for_each_sequence_and_fewer_than_no_queries_are_not_a_networks():
    with pytest.raises(ConfigError, match="num_queries is invalid"):
        network()(torch.zeros(2, 5, dtype=torch.long), num_queries=-1)
    with pytest.raises(ConfigError, match=r"expected an int, .*PositionEncoded takes one offset"):
        network()(torch.zeros(2, 5, dtype=torch.long), position_offset=torch.tensor([0, 1]))


@pytest.mark.filterwarnings("ignore")
def test_trace_is_refused_where_it_would_fix_the_number_of_steps():
    for module, given in (
        (PositionEncoded(LSTM(8, 16), Sinusoidal(4)), torch.rand(5, 2, 4)),
        (network(), torch.zeros(2, 5, dtype=torch.long)),
        (network(encoding="none"), torch.zeros(2, 5, dtype=torch.long)),
        (S4D(8, 16), torch.rand(2, 5, 8)),
    ):
        with pytest.raises(ConfigError, match=r"torch\.jit\.trace cannot .*torch\.export"):
            torch.jit.trace(module, (given,))


def test_vmap_is_refused_in_our_words():
    with pytest.raises(ConfigError, match=r"vmap .*one batch of all sequences"):
        torch.func.vmap(LSTM(8, 16))(torch.rand(3, 5, 2, 8))
    with pytest.raises(ConfigError, match=r"vmap .*one batch of all sequences"):
        torch.func.vmap(network())(torch.zeros(3, 2, 5, dtype=torch.long))
    layer, vectors = LSTM(8, 16), torch.rand(5, 2, 8)
    several = {name: torch.stack([weight] * 3) for name, weight in layer.named_parameters()}
    with pytest.raises(ConfigError, match=r"vmap .*one batch of all sequences"):
        torch.func.vmap(lambda w: torch.func.functional_call(layer, w, (vectors,))[0])(several)
