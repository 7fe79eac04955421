"""Embedding, positional encoding, recurrent core and output layer put together.

The input projection is folded: W·[E(x); P(t)] + b = (W_x·E)[x] + (W_p·P)[t] + b, so each row of
the embedding and each step's encoding is projected once per batch, then gathered and added. The
query is one row at every output step: it is projected once and broadcast, its gradient a sum.
"""

from typing import cast

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import _has_any_global_hook

from pernn.cores import Linear, RecurrentCore
from pernn.errors import ConfigError
from pernn.kernels import MAX_HIDDEN, UsualNetwork

from .network import EncodedNetwork, run_core

ID_TYPES = (torch.int64, torch.int32)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Where a module keeps those that would want to hear of a forward pass or a gradient."""


class PositionEncodedRNN(EncodedNetwork):
    """Tokens and queries in, logits out.

    Args:
        vocab_size: Number of token ids, K.
        core: Module that recurs, its class or kind (`elman`, `gru`, `lstm`, `s4d`, `min_gru`, …);
            or `torch.nn.GRU` and the like, for which ours of the same function stands in.
        encoding: The positional encoding: a module, or a kind (`none`, `sinusoidal`, `learned`,
            `random`, `constant`, `repeated_embedding`), built with size `embedding_size`.
        embedding_size: Width of a token's vector; as wide as the state if absent.
        hidden_size: Width of the state of a core that is made here; 512 if absent.
        num_layers: Layers of a core that is made here; 1 if absent.
        num_positions: Longest sequence, both phases, for an encoding given by kind; 1,024 if
            absent.
        num_extra_rows: Rows of the embedding after those of the ids: first the query's, K, then
            those of tokens K + 1 …; none for a network that is never queried.
        phase_size: Further features of the core's input, which a subclass fills.
        device: Where the network goes once its weights are drawn.
        dtype: Its type there.
        generator: Source of the initial weights of what is made here.

    Raises:
        ConfigError: If K < 2, the number of extra rows is negative, the core is none that recurs,
            or its input size is not the width of what it gets.

    Examples:
        >>> model = PositionEncodedRNN(vocab_size=10, core="lstm", embedding_size=8, hidden_size=8)
        >>> tokens = torch.tensor([[8, 2, 1]])
        >>> tuple(model(tokens, num_queries=3).shape)
        (1, 3, 10)

    Source: Morita (2024), section 4.1.
    """

    embedding: nn.Embedding

    def make_embedding(self, width: int) -> nn.Embedding:
        """Make the embedding: the rows of the ids, then the extra ones."""
        if self.vocab_size < 2 or self.num_extra_rows < 0:
            raise ConfigError(
                "expected vocab_size of at least 2 and num_extra_rows of at least 0, got "
                f"{self.vocab_size} and {self.num_extra_rows}"
            )
        num_rows = self.vocab_size + self.num_extra_rows
        return nn.Embedding(num_rows, width, _weight=torch.empty(num_rows, width))

    def reset_embedding(self, generator: torch.Generator | None = None) -> None:
        """Draw every row from N(0, 1)."""
        nn.init.normal_(self.embedding.weight, generator=generator)

    def embed(self, tokens: Tensor, num_queries: int) -> tuple[Tensor, Tensor | None, int]:
        """Return the embedding's rows, or the tokens' vectors if fewer."""
        if num_queries and not self.num_extra_rows:
            raise ConfigError(
                f"{num_queries} queries, but the embedding has no query row: build the network "
                "with num_extra_rows=1"
            )
        # Without queries any row does: it is shown at no step.
        query_row = self.vocab_size if num_queries else 0
        rows = self.repeat(self.embedding.weight) if _is_usual(self.embedding) else None
        # A program that is compiled or exported has one way for any number of tokens.
        compiles = torch.compiler.is_compiling()
        if rows is not None and (compiles or len(rows) <= tokens.numel()):
            return rows, tokens.t(), query_row
        ids = F.pad(tokens.t().flatten(), (0, int(num_queries > 0)), value=query_row)
        rows = self.repeat(self.embedding(ids)) if rows is None else F.embedding(ids, rows)
        return rows, None, len(ids) - 1 if num_queries else 0

    @torch.no_grad()
    def generate(
        self,
        prompt: Tensor,
        num_tokens: int,
        *,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch tokens"]:
        """Continue sequences token by token, as a language model.

        Args:
            prompt: Ids `(batch, time)`, at least one each, those of extra rows (one begins a text)
                included.
            num_tokens: Tokens to add, at least one.
            temperature: Divides the logits before one is drawn; at 0 the likeliest is taken.
            generator: Of the draws, on the CPU; PyTorch's own if absent.

        Returns:
            The new tokens, 0 … vocab_size − 1, without the prompt.

        Raises:
            ConfigError: If an argument is out of range, or the network is told more than tokens.
        """
        if self.core.input_size != self.joined_size:
            raise ConfigError(f"a {type(self).__name__} is told more than tokens: it cannot go on")
        if num_tokens < 1 or not 0 <= temperature < float("inf"):
            raise ConfigError(
                "expected at least one token, and a temperature of at least 0, got "
                f"{num_tokens} and {temperature}"
            )
        last = self.vocab_size + self.num_extra_rows - 1
        is_batch = prompt.dim() == 2 and prompt.numel() and prompt.dtype in ID_TYPES
        if not is_batch or not 0 <= int(prompt.min()) <= int(prompt.max()) <= last:
            raise ConfigError(
                f"prompt is invalid: expected ids 0 … {last} of shape (batch, time), at least one "
                f"each, got {prompt.dtype} of shape {tuple(prompt.shape)}"
            )
        found: list[Tensor] = []
        tokens, state, position = prompt, None, 0
        for _ in range(num_tokens):
            # Not `forward`, which takes the query's row, here that of a beginning, for a mistake.
            inputs = self.prepare(tokens, position_offset=position)
            every, state = run_core(self.core, inputs, state)
            position += tokens.shape[1]
            logits = self.output_layer(every[:, -1]).double().cpu()
            if temperature:
                chances = (logits / temperature).softmax(dim=1)
                tokens = torch.multinomial(chances, 1, generator=generator)
            else:
                tokens = logits.argmax(dim=1, keepdim=True)
            tokens = tokens.to(prompt.device)
            found.append(tokens)
        return torch.cat(found, dim=1)

    def usual(self, num_steps: int, num_queries: int = 0) -> UsualNetwork | None:
        """Return the parts that a whole update trains, or `None`.

        Usual are classes that compute what their names say (a subclass may not), one recurrent
        layer, float32 weights on the CPU, all of them trained, a concatenated encoding that is not,
        no hook that would want to hear of a forward pass or a gradient, and a state that is not so
        wide that separate calls are faster. `num_steps` are those of both phases.
        """
        core, encoding = self.core, self.encoding
        embedding, layer = self.embedding, self.output_layer
        if not isinstance(core, RecurrentCore) or core.kernel is None or core.num_layers > 1:
            return None
        parts: tuple[nn.Module, ...] = (self, encoding, embedding, layer, core)
        entering, recurrent, *biases = core.all_weights[0]
        weights = [embedding.weight, entering, recurrent, layer.weight, layer.bias, *biases]
        is_usual = (
            (type(self), type(layer)) == (PositionEncodedRNN, Linear)
            and _is_usual(embedding)
            and (encoding.combine == "concat" or not encoding.size)
            and (self.num_extra_rows > 0 or not num_queries)
            and not _has_any_global_hook()
            and not any("forward" in part.__dict__ for part in parts)
            and sum(len(part._parameters) for part in parts) == len(weights)
            and not any(part._modules for part in parts[1:])
            and all(map(_is_plain, weights))
            and len({*map(id, weights)}) == len(weights)
            and core.hidden_size <= MAX_HIDDEN
        )
        if not is_usual:
            return None
        encodings = encoding(num_steps, num_queries) if encoding.size else None
        if encodings is not None and (encodings.requires_grad or encodings.dtype != torch.float32):
            return None
        trained = cast(list[nn.Parameter], weights)
        hooks = [getattr(part, name) for part in parts for name in HOOKS]
        network = UsualNetwork(core.kernel, trained, encoding.embedding_copies, encodings, hooks)
        return network if network.is_as_found() else None

    def check_inputs(self, tokens: Tensor) -> None:
        """Refuse ids outside the vocabulary, the query's row included.

        `states` does not look: tasks of several lengths show that row where a sequence has ended.
        Only ids on the CPU are looked at.
        """
        if tokens.dim() not in (1, 2) or tokens.dtype not in ID_TYPES:
            raise ConfigError(
                "tokens is invalid: expected integers (int64 or int32) of shape (batch, time) or "
                f"(time,), got {tokens.dtype} of shape {tuple(tokens.shape)}"
            )
        if torch.compiler.is_compiling() or tokens.device.type != "cpu" or not tokens.numel():
            return
        least, most = map(int, tokens.aminmax())
        query = self.vocab_size
        shows_query = self.is_queried and most >= query and bool((tokens == query).any())
        if least < 0 or most >= query + self.num_extra_rows or shows_query:
            raise ConfigError(
                f"tokens is invalid: ids must lie in 0 … {query - 1}, got {least} … {most}"
            )


def _is_usual(embedding: nn.Module) -> bool:
    """Return whether an embedding is a plain look-up without hooks."""
    return (
        isinstance(embedding, nn.Embedding)
        and type(embedding).forward is nn.Embedding.forward
        and (embedding.padding_idx, embedding.max_norm) == (None, None)
        and not (embedding.sparse or embedding.scale_grad_by_freq)
        and not any(getattr(embedding, name) for name in HOOKS)
        and "forward" not in embedding.__dict__
    )


def _is_plain(weight: Tensor) -> bool:
    """Return whether a weight is a plain parameter, in float32 on the CPU."""
    return (
        type(weight) is nn.Parameter
        and weight.dtype == torch.float32
        and weight.device.type == "cpu"
        and weight.is_contiguous()
    )
