"""What a layer of ours has not, or cannot read, is named."""

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from pernn.cores import GRU, LRU, LSTM, S4D, Elman, GatedDelta, MinGRU, MinLSTM
from pernn.errors import ConfigError
from pernn.lab.cores import CORES
from refusals import refusals

PACKED = pack_sequence([torch.zeros(2, 3)])


test_what_there_is_not_is_named = refusals(
    (lambda: Elman(8, 16, 1, "relu"), "nonlinearity='relu' is not supported, only 'tanh'"),
    (lambda: Elman(8, 16, 1, "tanh", True, False, 0.5), "dropout .* are not supported"),
    (lambda: LSTM(8, 16, 1, True, False, 0.5), "dropout .* are not supported"),
    (lambda: LSTM(8, 16, 1, True, False, 0.0, True), "bidirectional, .* are not supported"),
    (lambda: S4D(3, 4, state_size=7), "state_size must be even, got 7"),
    (lambda: S4D(3, 4, state_size=0), "state_size must be at least 1, got 0"),
    (lambda: CORES.validate({"kind": "s4d", "state_size": 7}), "state_size.*multiple of 2"),
    (lambda: LRU(3, 4, state_size=0), "state_size must be at least 1, got 0"),
    (lambda: GatedDelta(3, 4, num_heads=3), "num_heads must divide hidden_size, got 3 and 4"),
    (lambda: GatedDelta(3, 4, num_heads=0), "num_heads must be at least 1, got 0"),
    (lambda: MinGRU(3, 4)(torch.zeros(1, 2, 3), (torch.zeros(2), torch.zeros(2))), "must hold"),
)


@pytest.mark.parametrize("kind", [Elman, GRU, LSTM, S4D, MinGRU, MinLSTM, LRU, GatedDelta])
def test_what_pytorchs_layers_have_is_refused_by_name(kind):
    for option in ({"bidirectional": True}, {"dropout": 0.5}, {"proj_size": 2}):
        with pytest.raises(ConfigError, match=f"{kind.__name__}: .* not supported; PositionEnc"):
            kind(3, 4, **option)
    kind(3, 4, bidirectional=False, dropout=0.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bidirektional'"):
        kind(3, 4, bidirektional=True)


@pytest.mark.parametrize("core", [Elman(3, 4), GRU(3, 4), LSTM(3, 4), S4D(3, 4)])
def test_vectors_that_cannot_be_read_are_named(core):
    with pytest.raises(ConfigError, match="num_outputs is invalid beside a PackedSequence"):
        core(PACKED, num_outputs=1)
    with pytest.raises(ConfigError, match=r"shape is invalid: .*got \(1, 2, 3, 3\)"):
        core(torch.zeros(1, 2, 3, 3))
    if not isinstance(core, S4D):
        with pytest.raises(ConfigError, match=r"expected torch\.float32, as .* got torch\.float64"):
            core(torch.zeros(1, 2, 3, dtype=torch.float64))
