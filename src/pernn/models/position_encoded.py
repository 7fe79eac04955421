"""Embedding, position code, recurrent core and read-out put together.

The input projection is folded: W·[E(x); P(t)] + b = (W_x·E)[x] + (W_p·P)[t] + b, so each row of
the embedding and each step's code is projected once per batch, then gathered and added. The query
is one row at every output step: it is projected once and broadcast, its gradient a sum.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.cores import CORES
from pernn.encodings import ENCODINGS, CodeConfig, Encoding
from pernn.errors import ConfigError
from pernn.interfaces import Recurrence


class PositionEncodedRNN(nn.Module):
    """Tokens and queries in, logits out.

    Args:
        vocab_size: Number of token ids, K.
        core: Module that recurs, or the kind of one (`elman`, `gru`, `lstm`, `s4d`).
        encoding: Module that gives the codes, or the kind of one (`none`, `sinusoidal`, `learned`,
            `random`, `double`); a kind is made with code size `embedding_size`.
        embedding_size: Width of a token's vector.
        hidden_size: Width of the state if the core is given by kind.
        num_positions: Longest sequence, both phases, if a tabular encoding is given by kind.
        num_extra_rows: Rows of the embedding after those of the ids: first the query's, K, then
            those of tokens K + 1 …; none for a network that is never queried.
        generator: Source of the initial weights of what is made here.

    Raises:
        ConfigError: If K < 2, the number of extra rows is negative, the core is none of ours, or
            its input size is not the width of what it gets.

    Example:
        >>> model = PositionEncodedRNN(vocab_size=10, core="lstm", embedding_size=8, hidden_size=8)
        >>> tokens = torch.tensor([[8, 2, 1]])
        >>> tuple(model(tokens, num_queries=3).shape)
        (1, 3, 10)

    Source: Morita (2024), section 4.1.
    """

    def __init__(
        self,
        vocab_size: int,
        core: str | Recurrence = "lstm",
        encoding: str | Encoding = "sinusoidal",
        *,
        embedding_size: int = 512,
        hidden_size: int = 512,
        num_positions: int = 1024,
        num_extra_rows: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if vocab_size < 2:
            raise ConfigError(f"vocab_size must be at least 2, got {vocab_size}")
        if num_extra_rows < 0:
            raise ConfigError(f"num_extra_rows must be at least 0, got {num_extra_rows}")
        if isinstance(encoding, str):
            found = ENCODINGS.find(encoding)
            sized = {"size": embedding_size} if issubclass(found, CodeConfig) else {}
            config = ENCODINGS.validate({"kind": encoding, **sized})
            encoding = config.build(num_positions, "halves", generator)
        joined_size = encoding.joined_size(embedding_size)
        if isinstance(core, str):
            sizes = CORES.validate({"kind": core, "hidden_size": hidden_size})
            core = sizes.build(joined_size, generator)
        if not isinstance(core, Recurrence):
            raise ConfigError(
                f"core must be a kind or a core of pernn.cores, got {type(core).__name__}; "
                "PositionEncoded wraps PyTorch's own layers"
            )
        if core.input_size != joined_size:
            raise ConfigError(
                f"the core takes vectors of {core.input_size}, but embedding and code together "
                f"have {joined_size}: build it with input_size={joined_size}"
            )
        self.vocab_size, self.num_extra_rows = vocab_size, num_extra_rows
        num_rows = vocab_size + num_extra_rows
        self.embedding = nn.Embedding(
            num_rows, embedding_size, _weight=torch.empty(num_rows, embedding_size)
        )
        self.encoding: Encoding = encoding
        self.core: Recurrence = core
        # Built empty: PyTorch's own initialisation would draw from the global generator.
        self.readout = nn.utils.skip_init(nn.Linear, core.hidden_size, vocab_size)
        self.reset_embedding(generator)
        self.reset_readout(generator)

    def reset_embedding(self, generator: torch.Generator | None = None) -> None:
        """Draw every row from N(0, 1)."""
        nn.init.normal_(self.embedding.weight, generator=generator)

    def reset_readout(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(−1/√hidden_size, 1/√hidden_size), as `torch.nn.Linear`."""
        bound = 1 / math.sqrt(self.readout.in_features)
        for parameter in self.readout.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def forward(
        self,
        tokens: Int[Tensor, "batch input_time"],
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
    ) -> Float[Tensor, "batch scored vocab"]:
        """Read the tokens, then answer the queries.

        Args:
            tokens: Ids 0 … vocab_size − 1, or of further rows of the embedding.
            num_queries: Output steps that follow, each with the query row as input.
            num_scored: Last steps to give logits for; by default the queries, or all steps if
                there is none.

        Returns:
            Logits of the last `num_scored` steps.

        Raises:
            ConfigError: If there are not that many steps, or queries without a query row.
        """
        outputs, _ = self.core.recur(self.project(tokens, num_queries))
        logits: Tensor = self.readout(last_steps(outputs, num_queries, num_scored))
        return logits

    def project(
        self, tokens: Int[Tensor, "batch input_time"], num_queries: int = 0
    ) -> Float[Tensor, "batch time gate"]:
        """Give the core's projected inputs of all steps, both phases."""
        if num_queries and not self.num_extra_rows:
            raise ConfigError(
                f"{num_queries} queries, but the embedding has no query row: build the network "
                "with num_extra_rows=1"
            )
        batch, input_time = tokens.shape
        # Without queries any row does: it is shown at no step.
        query_row = self.vocab_size if num_queries else 0
        rows = torch.cat([self.embedding.weight] * self.encoding.embedding_copies, dim=1)
        by_time = tokens.t()
        if len(rows) <= tokens.numel():
            table = self.core.project(rows)
            inputs, query = F.embedding(by_time, table), table[query_row]
        else:
            # More ids than tokens: project only what occurs.
            inputs = self.core.project(F.embedding(by_time, rows))
            query = self.core.project(rows[query_row])
        queries = query.expand(num_queries, 1, -1)
        if self.encoding.size:
            codes = self.encoding(input_time + num_queries, num_queries)
            offset = rows.shape[1] if self.encoding.attach == "concat" else 0
            steps = self.core.project(codes, offset=offset, bias=False).unsqueeze(1)
            inputs, queries = inputs + steps[:input_time], queries + steps[input_time:]
        gates = torch.cat([inputs, queries.expand(-1, batch, -1)])
        return gates.transpose(0, 1)


def last_steps(
    values: Float[Tensor, "batch time width"], num_queries: int, num_scored: int | None
) -> Float[Tensor, "batch scored width"]:
    """Keep the last `num_scored` steps; by default the queries, or all if there is none.

    Raises:
        ConfigError: If there are not that many steps.
    """
    num_steps = values.shape[1]
    if num_scored is None:
        num_scored = num_queries or num_steps
    if not 1 <= num_scored <= num_steps:
        raise ConfigError(f"num_scored must lie in 1 … {num_steps} steps, got {num_scored}")
    return values[:, num_steps - num_scored :]
