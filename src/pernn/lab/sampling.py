"""Text from the language model of a run."""

from pathlib import Path
from typing import cast

import torch

from pernn.errors import ConfigError
from pernn.lab.config import own_parts_off
from pernn.lab.corpora import LanguageModelling, LanguageModellingConfig
from pernn.lab.runs import load_model, read_run
from pernn.models import PositionEncodedRNN


@own_parts_off()
def sample(
    run: str | Path,
    prompt: str = "",
    *,
    num_tokens: int = 100,
    temperature: float = 1.0,
    seed: int = 0,
) -> str:
    """Return the prompt in pieces, and the newest checkpoint's continuation.

    Args:
        run: Directory of a run on the task language_modelling; its corpus is prepared if it is not.
        prompt: How the text begins.
        num_tokens: Pieces to add.
        temperature: Divides the logits; at 0 the likeliest piece is taken.
        seed: Of the draws.

    Raises:
        ConfigError: If it is a run of another task or has no checkpoint, an argument is out of
            range, or the prompt is empty under the rules as-run, which know no beginning.
        MachineError: If the corpus or SentencePiece is missing.
    """
    spec, _ = read_run(Path(run))
    if not isinstance(spec.task, LanguageModellingConfig):
        raise ConfigError(
            f"{run}: expected a run of the task language_modelling, which has text, got one of "
            f"{spec.task.kind}"
        )
    model = cast(PositionEncodedRNN, load_model(run))
    task = cast(LanguageModelling, spec.build_task())
    pieces = task.corpus.pieces
    ids = torch.tensor(pieces.encode([prompt])[0].tolist(), dtype=torch.int64)
    begun = torch.cat([torch.tensor([task.vocab_size] * len(task.extra_rows)).long(), ids])
    if not len(begun):
        raise ConfigError(
            "--prompt is missing: under the rules as-run no text has a beginning to go on from"
        )
    source = torch.Generator().manual_seed(seed)
    found = model.generate(
        begun.unsqueeze(0), num_tokens, temperature=temperature, generator=source
    )
    return pieces.decode(torch.cat([ids, found[0]]).numpy())
