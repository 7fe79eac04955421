"""A core's Jacobian: a closed form if known, else autograd's."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pernn.cores import Core, Recurrence

from .fallback import AutogradJacobian
from .linearisation import Gates, Linearisation, divide_work, even_blocks, exact_products
from .pairing import check_steps
from .products import ProductJacobian


def choose_form(core: Recurrence) -> Any:
    """Return the class of a core's closed form, else autograd's.

    What a class inherits does not count: a subclass may compute something else.
    """
    own = vars(type(core))
    if "factors" in own:
        return ProductJacobian
    found = core.linearisation() if isinstance(core, Core) and "linearisation" in own else None
    return AutogradJacobian if found is None else found


def linearise(core: Recurrence, gates: Gates, source: int, target: int) -> Linearisation:
    """Linearise outputs of step `target` in the state after step `source`.

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all steps; those after `target` do not matter.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.

    Raises:
        ConfigError: If there are no such steps.
    """
    check_steps(source, target, gates.shape[1])
    with exact_products():
        found: Linearisation = choose_form(core)(core, gates, source, target)
        return found


def jacobian(
    core: Recurrence,
    gates: Gates,
    source: int,
    target: int,
    *,
    memory_budget: int = 2**29,
) -> Float[Tensor, "batch rows state"]:
    """Return Jacobians of one step's outputs in an earlier latent state.

    The state is what the core calls its state, its tensors one after another, flattened: h for
    Elman and GRU, [h; c] for the LSTM, each with all layers; for S4D layers × channels × modes ×
    (real part, imaginary part).

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all steps, `(batch, time, gate)` whatever a core's `batch_first`
            says: `core.project(vectors)`, `model.project(tokens)`.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs, those of the top layer.
        memory_budget: Bytes that may be worked with, beside the result.

    Raises:
        ConfigError: If there are no such steps.

    Examples:
        >>> from pernn.cores import LSTM
        >>> core = LSTM(4, 8, batch_first=True)
        >>> tuple(jacobian(core, core.project(torch.zeros(2, 5, 4)), 1, 5).shape)
        (2, 8, 16)
    """
    per_sequence, per_row = choose_form(core).footprint(core, gates, target - source)
    num_sequences, num_rows = divide_work(
        per_sequence, per_row, core.hidden_size, max(2, len(gates)), memory_budget
    )
    blocks = []
    for start, end in even_blocks(len(gates), num_sequences):
        linear = linearise(core, gates[start:end], source, target)
        with exact_products():
            parts = []
            for first, last in even_blocks(core.hidden_size, num_rows):
                rows, exponents = linear.rows(first, last)
                parts.append(linear.expand(torch.ldexp(rows, exponents.unsqueeze(2))))
        blocks.append(torch.cat(parts, dim=1))
    return torch.cat(blocks)
