"""`pernn sample`."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, print_json


def sample_text(
    run: Annotated[Path, typer.Argument(help="Directory of a run on language_modelling.")],
    prompt: Annotated[str, typer.Option("--prompt", help="How the text begins.")] = "",
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Pieces to add.")] = 100,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0, help="0 takes the likeliest piece.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the draws.")] = 0,
    as_json: Json = False,
) -> None:
    """Print text that a run's language model writes, with its newest checkpoint.

    Example: pernn sample results/runs/0123456789abcdef --prompt "The" --tokens 50 --seed 1
    """
    # Only what computes loads torch.
    from pernn.sampling import sample

    text = sample(run, prompt, num_tokens=tokens, temperature=temperature, seed=seed)
    if as_json:
        print_json({"prompt": prompt, "seed": seed, "temperature": temperature, "text": text})
    else:
        typer.echo(text)
