"""The textbook network, oracle of every faster path, and Jacobians and similarities likewise."""

from copy import deepcopy
from functools import partial

import torch
from torch import nn

from pernn.analysis import KINDS
from pernn.analysis.jacobians import AutogradJacobian
from pernn.cores import RecurrentCore
from pernn.models import AutoregressiveRNN, CodedRNN
from pernn.models.network import count_outputs


def step_by_step(run, inputs, state=None):
    outputs = []
    for step in inputs.split(1, dim=1):
        output, state = run(step, state)
        outputs.append(output)
    return torch.cat(outputs, dim=1), state


def plain_core(core):
    """Return PyTorch's layer with a core's weights, batch first, or a copy step by step."""
    if not isinstance(core, RecurrentCore):
        twin = deepcopy(core)
        twin.forward = partial(step_by_step, twin.forward)
        return twin
    layer = core.to_torch()
    layer.batch_first = True
    return layer


class PlainRNN(nn.Module):
    """The network as a textbook's script would compute it, with a copy of the weights."""

    def __init__(self, model):
        super().__init__()
        self.embedding, self.encoding = deepcopy(model.embedding), deepcopy(model.encoding)
        self.core, self.output_layer = plain_core(model.core), deepcopy(model.output_layer)
        self.vocab_size, self.has_codes = model.vocab_size, isinstance(model, CodedRNN)
        self.phase = deepcopy(model.phase) if isinstance(model, AutoregressiveRNN) else None

    def forward(self, tokens, num_queries=0, *, num_scored=None, scored=None):
        codes = None
        if self.has_codes:
            tokens, codes = tokens[..., 0].long(), tokens[..., 1:]
        # The query is an id, or the zero vector.
        value = 0 if tokens.is_floating_point() else self.vocab_size
        queries = tokens.new_full((len(tokens), num_queries, *tokens.shape[2:]), value)
        vectors = self.embedding(torch.cat([tokens, queries], dim=1))
        inputs = self.encoding.join(vectors, num_queries)
        count = count_outputs(inputs.shape[1], num_queries, num_scored)
        if self.phase is not None:
            is_output = torch.arange(inputs.shape[1]) >= inputs.shape[1] - count
            phases = self.phase[is_output.long()].expand(len(tokens), -1, -1)
            inputs = torch.cat([inputs, phases], dim=2)
        if codes is not None:
            inputs = torch.cat([inputs, codes], dim=2)
        logits = self.output_layer(self.core(inputs)[0])[:, -count:]
        return logits if scored is None else logits[scored]


def autograd_jacobian(core, gates, source, target):
    """Return the Jacobians by one backward pass per row, whatever closed form there is."""
    linear = AutogradJacobian(core, gates, source, target)
    rows, exponents = linear.rows(0, core.hidden_size)
    return torch.ldexp(rows, exponents.unsqueeze(2))


def effective_rank(jacobians):
    """Return (Σσ²)²/Σσ⁴ of each matrix."""
    squares = torch.linalg.svdvals(jacobians) ** 2
    return (squares.sum(1) ** 2 / (squares**2).sum(1)).numpy()


def similarity(first, second, kind="similarity"):
    norms = [torch.linalg.vector_norm(side, dim=2) for side in (first, second)]
    return KINDS[kind](*(part.numpy() for part in ((first * second).sum(2), *norms)))
