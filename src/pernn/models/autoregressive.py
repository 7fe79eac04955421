"""A network whose own outputs are its inputs while it answers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pernn.cores import Projected
from pernn.encodings import Encoding
from pernn.errors import ConfigError

from .network import CoreLike, choose_width, count_outputs
from .position_encoded import PositionEncodedRNN


class AutoregressiveRNN(PositionEncodedRNN):
    """A network that is fed its previous outputs in the output phase.

    A learnable vector is concatenated to the input of every step, one in the input phase, another
    in the output phase, which is the last `num_scored` steps. Row K of the embedding, DUMMY, is
    the token of the first output step. `forward` is given the outputs (teacher forcing); `decode`
    finds them.

    Args:
        vocab_size: Number of token ids, K.
        core: Module that recurs, its class or kind;
            or `torch.nn.GRU` and the like, for which ours of the same function stands in.
        encoding: Module that gives the encodings, or the kind of one.
        embedding_size: Width of a token's vector; as wide as the state if absent.
        phase_size: Width of the two phases' vectors; `embedding_size` if absent.
        hidden_size: Width of the state of a core that is made here; 512 if absent.
        num_layers: Layers of a core that is made here; 1 if absent.
        num_positions: Longest sequence, both phases, for an encoding given by kind; 1,024 if
            absent.
        num_extra_rows: Rows of the embedding after those of the ids, DUMMY's first.
        device: Where the network goes once its weights are drawn.
        dtype: Its type there.
        generator: Source of the initial weights of what is made here.

    Raises:
        ConfigError: As `PositionEncodedRNN`.

    Examples:
        >>> model = AutoregressiveRNN(10, "lstm", "none", embedding_size=8, hidden_size=8)
        >>> prompt = torch.tensor([[8, 2, 1, 10]])  # 10 is DUMMY
        >>> tuple(model.decode(prompt, num_outputs=3).shape)
        (1, 3, 10)

    Source: Morita (2024), version 1, appendix B.2.

    Differs: The text gives neither the width of the phases' vectors nor their first values: they
        are as wide as a token's vector, and N(0, 1) like it.
    """

    is_queried = False

    def __init__(
        self,
        vocab_size: int,
        core: CoreLike = "lstm",
        encoding: str | Encoding = "none",
        *,
        embedding_size: int | None = None,
        phase_size: int | None = None,
        hidden_size: int | None = None,
        num_layers: int | None = None,
        num_positions: int | None = None,
        num_extra_rows: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        embedding_size = choose_width(embedding_size, core, hidden_size)
        phase_size = embedding_size if phase_size is None else phase_size
        super().__init__(
            vocab_size,
            core,
            encoding,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            num_layers=num_layers,
            num_positions=num_positions,
            num_extra_rows=num_extra_rows,
            phase_size=phase_size,
            generator=generator,
        )
        self.phase = nn.Parameter(torch.empty(2, phase_size))
        self.reset_phase(generator)
        self.to(device=device, dtype=dtype)

    def reset_phase(self, generator: torch.Generator | None = None) -> None:
        """Draw the vectors of both phases from N(0, 1)."""
        nn.init.normal_(self.phase, generator=generator)

    def prepare(
        self,
        tokens: Int[Tensor, "batch input_time"],
        num_queries: int = 0,
        num_scored: int | None = None,
        position_offset: int = 0,
    ) -> Projected:
        """Project inputs, DUMMY, true outputs and the two phases.

        Args:
            tokens: Ids; the last `num_scored` of them are the output phase.
            num_queries: None: there is no query here.
            num_scored: Steps of the output phase; must be given.
            position_offset: Position of the first step.

        Raises:
            ConfigError: If there are queries, or not that many steps.
        """
        if num_queries or num_scored is None:
            raise ConfigError(
                "an autoregressive network is fed outputs, not queries: it needs num_queries=0 "
                f"and num_scored, got num_queries={num_queries} and num_scored={num_scored}"
            )
        num_outputs = count_outputs(tokens.shape[1], 0, num_scored)
        inputs = super().prepare(tokens, position_offset=position_offset)
        return inputs.plus(self._phases(tokens.shape[1], num_outputs))

    def decode(self, prompt: Tensor, num_outputs: int) -> Float[Tensor, "batch scored vocab"]:
        """Decode step by step, feeding back the likeliest id.

        Args:
            prompt: Inputs and DUMMY, `(batch, time)`.
            num_outputs: Steps of the output phase; DUMMY's is the first.

        Returns:
            Logits of the output phase.

        Raises:
            ConfigError: If no output is asked for, or the prompt is no batch of ids.
        """
        if num_outputs < 1 or prompt.dim() != 2:
            raise ConfigError(
                "expected a prompt (batch, time) and at least one output, got "
                f"{tuple(prompt.shape)} and {num_outputs}"
            )
        self.check_inputs(prompt)
        start = prompt.shape[1]
        inputs = super().prepare(prompt).plus(self._phases(start, 1))
        outputs, state = self.core.recur(inputs.gates().transpose(0, 1))
        logits = [self.output_layer(outputs[:, -1])]
        last = self._phases(1, 1)
        encodings = self.project_encoding(start + num_outputs - 1, 0)
        for step in range(start, start + num_outputs - 1):
            tokens = self.embedding(logits[-1].argmax(dim=1))
            gate = self.core.project(self._repeat(tokens)) + last
            if encodings is not None:
                gate = gate + encodings[step]
            outputs, state = self.core.recur(gate.unsqueeze(1), state)
            logits.append(self.output_layer(outputs[:, -1]))
        return torch.stack(logits, dim=1)

    def _phases(self, num_steps: int, num_outputs: int) -> Float[Tensor, "time gate"]:
        """Return the two phases' share of the projected inputs, the last steps the second's."""
        first, second = self.core.project(self.phase, offset=self.joined_size, bias=False)
        return torch.cat(
            [first.expand(num_steps - num_outputs, -1), second.expand(num_outputs, -1)]
        )
