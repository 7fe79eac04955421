"""What a network cannot read or PyTorch cannot reach into is named in a line of ours."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from pernn import GRU, LSTM, S4D, MinGRU, PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.errors import ConfigError
from pernn.kernels import rounding_products
from pernn.lab.cores import CORES
from pernn.models import AutoregressiveRNN, CodedRNN, VectorRNN, extend_vocabulary
from refusals import refusals


def network(core="lstm", **options):
    return PositionEncodedRNN(16, core, hidden_size=16, **options)


def sized(core, **options):
    return PositionEncodedRNN(9, core, Sinusoidal(6), embedding_size=4, **options)


class Own(nn.Module):
    """A layer that does not say which axis is time."""


USUAL, MORE, NONE = network(), network(num_extra_rows=3), network(num_extra_rows=0)
FED = AutoregressiveRNN(16, "gru", hidden_size=16)
VECTOR = VectorRNN(3, "gru", hidden_size=8)
CODED = CodedRNN(5, "gru", hidden_size=8, phase_size=4)
WRAPPED = PositionEncoded(GRU(10, 8, batch_first=True), Sinusoidal(6))
TWO = [torch.zeros(1, 3), torch.zeros(2, 3)]
IDS, STATE, IN = torch.zeros(2, 5, dtype=torch.long), torch.zeros(1, 2, 16), r"ids must lie in 0 … "
SCORED = "num_scored must lie in 1 …"
NO_TOKENS = [
    (torch.rand(5), r"got torch\.float32 of shape \(5,\)"),
    (torch.zeros(2, 5, dtype=torch.bool), r"got torch\.bool of shape \(2, 5\)"),
    (torch.tensor(3), r"got torch\.int64 of shape \(\)"),
    (torch.zeros(2, 3, 5, dtype=torch.long), r"got torch\.int64 of shape \(2, 3, 5\)"),
    (torch.tensor([[3, 40]]), IN + "15, got 3 … 40"),
    (torch.tensor([[3, -1]]), IN + "15, got -1 … 3"),
    (torch.tensor([[3, 16]]), IN + "15, got 3 … 16"),
    (torch.tensor([16, 3, 1]), IN + "15, got 1 … 16"),
]
NO_PROMPT = [
    (torch.tensor([[3, 40]]), " 0 … 1[56]"),
    (torch.tensor([[True, False]]), r"got torch\.bool of shape \(1, 2\)"),
    (torch.rand(1, 2), r"got torch\.float32 of shape \(1, 2\)"),
    (torch.tensor([3, 4]), r"prompt .*\(batch, time\).* got .*\(2,\)"),
]
test_what_a_network_cannot_read_is_named = refusals(
    *((lambda tokens=tokens: USUAL(tokens), said) for tokens, said in NO_TOKENS),
    (lambda: MORE(torch.tensor([[18, 16, 3]])), "0 … 15, got 3 … 18"),
    (lambda: NONE(torch.tensor([[16]])), "0 … 15, got 16 … 16"),
    (lambda: NONE(IDS, 2), "2 queries, but the embedding has no query row"),
    (lambda: FED(torch.tensor([[3, 17, 3]]), num_scored=2), "0 … 15, got 3 … 17"),
    (lambda: FED(IDS, num_queries=2, num_scored=2), "fed outputs, not queries"),
    (lambda: FED(IDS), "fed outputs, not queries"),
    *((lambda ids=ids: USUAL.generate(ids, 2), said) for ids, said in NO_PROMPT),
    *((lambda ids=ids: FED.decode(ids, 2), said) for ids, said in NO_PROMPT),
    *(
        (lambda kind=kind: kind(9, "gru", Sinusoidal(4, masked="output")), "which has no queries")
        for kind in (AutoregressiveRNN, CodedRNN)
    ),
    (lambda: CODED(torch.zeros(2, 1, 5), 3), "num_queries is invalid: expected 0, got 3"),
    (lambda: FED.decode(IDS, 0), "at least one output, got .* and 0"),
    (lambda: FED.generate(IDS, 2), "told more than tokens"),
    (lambda: NONE.generate(torch.tensor([[16]]), 2), "expected ids 0 … 15"),
    (lambda: USUAL.generate(IDS[:1, :0], 2), "prompt is invalid"),
    (lambda: USUAL.generate(IDS, 0), "at least one token"),
    (lambda: USUAL.generate(IDS, 2, temperature=-1.0), "a temperature of at least 0"),
    (lambda: USUAL.generate(IDS, 2, temperature=float("nan")), "a temperature of at least 0"),
    (lambda: VECTOR(torch.zeros(1, 4, 5)), r"\(batch, time, 3\).*4, 5\)"),
    (lambda: VECTOR(torch.zeros(3)), r"expected vectors .*\(3,\)"),
    (lambda: CODED(torch.zeros(3, 7, 4)), r"expected \(batch, time, 5\).*got \(3, 7, 4\)"),
    (lambda: CODED(torch.zeros(7, 5)), "ids beside their codes"),
    (lambda: CODED(torch.full((3, 7, 5), 6.0)), IN + "4"),
    (lambda: USUAL(IDS, num_queries=-1), "num_queries is invalid"),
    *(
        (lambda number=number: USUAL(IDS, 2, num_scored=number), f"{SCORED} 7 steps, got {number}")
        for number in (-1, 0, 8)
    ),
    (lambda: FED(IDS, num_scored=6), f"{SCORED} 5 steps, got 6"),
    (lambda: VECTOR(torch.zeros(1, 4, 3), 2, num_scored=7), f"{SCORED} 6 steps, got 7"),
    (
        lambda: USUAL(IDS, position_offset=torch.tensor([0, 1])),
        "expected an int, .*PositionEncoded takes one offset",
    ),
    (lambda: USUAL(IDS, hx=(STATE, STATE)), "position_offset is missing: .*position_offset=0"),
    (
        lambda: WRAPPED(torch.zeros(2, 5, 4), torch.zeros(1, 2, 8)),
        "position_offset is missing: .*position_offset=0",
    ),
    (lambda: WRAPPED(torch.zeros(2, 5, 4), position_offset=-1), "at least 0, got -1"),
    *(
        (lambda call=call: call(pack_sequence([torch.zeros(2, 4)])), "takes vectors of 3, got 4")
        for call in (GRU(3, 4), S4D(3, 4))
    ),
    *(
        (
            lambda core=core, size=size: core(pack_sequence(TWO, enforce_sorted=False), size),
            "the state must be that of 2 packed sequences, got ",
        )
        for core in (GRU(3, 4), MinGRU(3, 4))
        for size in (torch.zeros(1, 1, 4), torch.zeros(1, 5, 4))
    ),
)
test_networks_that_cannot_be_are_refused = refusals(
    (lambda: PositionEncodedRNN(1), "expected vocab_size of at least 2 .*, got 1 and 1"),
    (lambda: VectorRNN(0), "at least one component .*, got vocab_size=0"),
    (lambda: VectorRNN(3, num_extra_rows=2), "no extra rows, got .*num_extra_rows=2"),
    (lambda: network(num_extra_rows=-1), "num_extra_rows of at least 0, got 16 and -1"),
    (lambda: PositionEncodedRNN(8, embedding_size=4, hidden_size=0), "hidden_size must be at"),
    (lambda: network("lstn"), r"no kind 'lstn' \(known: elman, gru, lstm,"),
    (lambda: network(encoding="sine"), "no kind 'sine'"),
    (
        lambda: sized(GRU(6, 8)),
        "takes vectors of 6, but .* together have 10: build it with input_size=10",
    ),
    (
        lambda: AutoregressiveRNN(9, LSTM(10, 5), embedding_size=6),
        "but embedding, encoding and phase together have 12",
    ),
    (lambda: sized(GRU(10, 8), hidden_size=999), "hidden_size=999 is invalid beside a core"),
    (lambda: sized(GRU(10, 8), num_layers=2), "num_layers=2 is invalid beside"),
    (lambda: sized(nn.Linear), "core is invalid: expected a kind, a core .* got Linear"),
    (
        lambda: sized("gru", num_positions=9),
        "num_positions is invalid: expected with an encoding given by",
    ),
    (lambda: extend_vocabulary(sized("gru"), 8), "more than the 9 ids"),
    (lambda: extend_vocabulary(sized("gru"), 9), "more than the 9 ids"),
    (lambda: PositionEncoded(Own(), Sinusoidal(6)), "pass batch_first as the layer has it"),
    (
        lambda: PositionEncoded(nn.GRU(10, 8), Sinusoidal(6), batch_first=True),
        "got True, and GRU has False",
    ),
    (
        lambda: PositionEncoded(nn.GRU(10, 8), "sinusoidal"),
        r"expected a module such as Sinusoidal\(6\), got 'sinu",
    ),
)


def test_tokens_beside_the_ids_are_read_where_they_mean_something():
    # Rows after the query's, a sign that begins the outputs, one that begins a text.
    assert MORE(torch.tensor([[17, 18]])).shape == (1, 2, 16)
    assert FED(torch.tensor([[3, 16, 3]]), num_scored=2).shape == (1, 2, 16)
    assert USUAL.generate(torch.tensor([[16, 3]]), 2).shape == (1, 2)
    # Without an encoding there is no position to lose.
    assert network("gru", encoding="none")(IDS, hx=STATE).shape == (2, 5, 16)


@pytest.mark.parametrize("core", CORES.names())
def test_nothing_scored_gives_no_rows_under_rounding_too(core):
    tokens, nothing = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.bool)
    for rounds in (False, True):
        with rounding_products(rounds=rounds):
            assert network(core)(tokens, scored=nothing).shape == (0, 16)


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


def test_transforms_and_vmap_are_refused_in_our_words():
    model, tokens = network(), torch.zeros(3, 12, dtype=torch.long)

    def loss(weights):
        return torch.func.functional_call(model, weights, (tokens,)).sum()

    with pytest.raises(ConfigError, match=r"torch\.func does not reach into .* of LSTM"):
        torch.func.grad(loss)(dict(model.named_parameters()))
    with pytest.raises(ConfigError, match=r"vmap .*one batch of all sequences"):
        torch.func.vmap(LSTM(8, 16))(torch.rand(3, 5, 2, 8))
    with pytest.raises(ConfigError, match=r"vmap .*one batch of all sequences"):
        torch.func.vmap(network())(torch.zeros(3, 2, 5, dtype=torch.long))
    layer, vectors = LSTM(8, 16), torch.rand(5, 2, 8)
    several = {name: torch.stack([weight] * 3) for name, weight in layer.named_parameters()}
    with pytest.raises(ConfigError, match=r"vmap .*one batch of all sequences"):
        torch.func.vmap(lambda w: torch.func.functional_call(layer, w, (vectors,))[0])(several)
