"""Pictures of a task: sequences step by step, as text."""

from dataclasses import dataclass

from pernn.lab.interfaces import UNSCORED, Task

BLANK = "."
"""Stands where no answer is expected."""


@dataclass(frozen=True)
class Picture:
    """One sequence.

    Attributes:
        inputs: What is shown at each step: an id, or the name of a row that is none; of a vector
            the first component, `0.12…`, and 0 for the zero vector.
        targets: What is expected there, None where nothing is scored.
    """

    inputs: tuple[int | str, ...]
    targets: tuple[int | str | None, ...]

    def text(self, width: int = 100) -> str:
        """Draw steps, counted from 1, inputs and targets in three aligned rows.

        Args:
            width: Characters of a line; what is longer goes on below.

        Returns:
            The rows, wrapped together; `.` where nothing is scored.

        Examples:
            >>> print(Picture((8, 29, "?", "?"), (None, None, 29, 8)).text())
            step     1  2  3  4
            input    8 29  ?  ?
            target   .  . 29  8
        """
        targets = (BLANK if target is None else target for target in self.targets)
        steps = range(1, len(self.inputs) + 1)
        shown = {"step": steps, "input": self.inputs, "target": targets}
        rows = {name: [str(word) for word in row] for name, row in shown.items()}
        cell = 1 + max(len(word) for row in rows.values() for word in row)
        label = 7
        at_once = max(1, (width - label) // cell)
        return "\n\n".join(
            "\n".join(
                name.ljust(label)
                + "".join(word.rjust(cell) for word in row[first : first + at_once])
                for name, row in rows.items()
            )
            for first in range(0, len(self.inputs), at_once)
        )


def draw_pictures(task: Task, num_samples: int = 1) -> list[Picture]:
    """Return the first training sequences of seed 111, without their padding."""
    batch = task.stream(111).train(0, num_samples)
    has_vectors = batch.targets.ndim == 3
    query, *others = task.extra_rows or ("0" if has_vectors else "",)
    names = {task.vocab_size + place: name for place, name in enumerate([query, *others])}

    def word(value: float) -> int | str:
        return f"{value:.2f}…" if has_vectors else names.get(int(value), int(value))

    before = batch.tokens.shape[1] + batch.num_queries - batch.targets.shape[1]
    pictures = []
    # Of vectors the first components: of a coded task the id.
    shown, asked = (
        (one if one.ndim == 2 else one[..., 0]).tolist() for one in (batch.tokens, batch.targets)
    )
    for tokens, targets in zip(shown, asked, strict=True):
        inputs = [*map(word, tokens), *[query] * batch.num_queries]
        answers = [None if target == UNSCORED else word(target) for target in targets]
        answers = [*[None] * before, *answers]
        # Queries after the last answer only fill up the batch: the sequence ends before them.
        while answers[-1] is None and inputs[-1] == query:
            del inputs[-1], answers[-1]
        pictures.append(Picture(tuple(inputs), tuple(answers)))
    return pictures
