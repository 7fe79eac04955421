"""Further figures of an experiment: the same trials, laid out another way."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pernn.lab.experiments import Experiment
from pernn.lab.trials import unroll

from .escaping import escape_markdown
from .figures import Format, draw, render
from .labels import Labels, footer
from .records import Record, matches

FORMATS: tuple[Format, ...] = ("svg", "pdf", "png")

LINK = re.compile(r'(\bid="|href="#|url\(#)')
"""Where an SVG names one of its parts."""


@dataclass(frozen=True)
class ExtraFigure:
    """One further figure.

    Attributes:
        stem: Its file name without the ending.
        caption: What it shows.
        footer: How the trials were run, and what its signs mean; empty if it was left out.
        drawn: Format → content; empty if it was left out.
        missing: Why it was left out; empty if it was not.
    """

    stem: str
    caption: str
    footer: str
    drawn: Mapping[Format, bytes]
    missing: str

    @property
    def sentence(self) -> str:
        """The caption with a full stop, unless it is a question."""
        return self.caption if self.caption.endswith(("?", ".")) else f"{self.caption}."

    @property
    def contents(self) -> dict[str, bytes]:
        """Return the files, by name."""
        return {f"{self.stem}.{form}": content for form, content in self.drawn.items()}

    def inline(self) -> str:
        """Return the drawing as part of a page that holds others, whose parts have other names."""
        text = self.drawn["svg"].decode()
        return LINK.sub(rf"\g<1>{self.stem}-", text[text.index("<svg") :])

    def markdown(self, form: Format) -> str:
        """Show the figure in Markdown, in a format, or say why it is not there."""
        name, sentence = escape_markdown(self.caption), escape_markdown(self.sentence)
        if self.missing:
            return f"*{name}*: {escape_markdown(self.missing)}."
        return f"![{name}]({self.stem}.{form})\n\n*{sentence}* {escape_markdown(self.footer)}."


def draw_extra_figures(
    experiment: Experiment,
    records: Sequence[Record],
    scale: str = "",
    formats: Sequence[Format] = FORMATS,
) -> list[ExtraFigure]:
    """Draw the further figures of an experiment, in its order.

    Args:
        experiment: Its `more_figures` say what is drawn, its labels how they are called.
        records: Finished trials; a figure whose rows none of them has is left out.
        scale: Of the sweep, said in the captions.
        formats: Which files are drawn.

    Raises:
        ConfigError: If two trials compete for one point, or a layout cannot be drawn.
        CorruptError: If the table of a layout is none.
    """
    label, found = Labels(experiment.labels), []
    for stem, layout in experiment.more_figures.items():
        plain = stem.replace("_", " ")
        caption = label(stem) if stem in experiment.labels else plain[0].upper() + plain[1:]
        shown = [record for record in records if matches(record, layout.where)]
        if layout.where and len(shown) in (0, len(records)):
            continue
        missing = "no finished trials yet" if not records else ""
        if records and not unroll(shown, layout.table):
            missing = f"no finished trial has a table {layout.table!r}"
        if missing:
            found.append(ExtraFigure(stem, caption, "", {}, missing))
            continue
        about = replace(experiment, question=caption, figure=replace(layout, where={}))
        figure = draw(about, shown, scale)
        drawn = {form: render(figure, form) for form in formats}
        found.append(ExtraFigure(stem, caption, footer(about, shown, scale), drawn, ""))
    return found
