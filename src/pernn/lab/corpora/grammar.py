"""A small grammar that writes text in the form of WikiText-103."""

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count

from pernn.randomness import RandomStream
from pernn.randomness import Split as Purpose

from .text import SPLITS, Split

NUM_TOPICS = 8
TOPIC_SHARE = 0.8
"""Probability that a noun comes from the paragraph's topic."""
ONSETS = "bdfgklmnprstvz"
VOWELS = "aeiouéō"
ADVERBS = ("often", "soon", "never", "today", "– it is said –", "again")
LONG_SHARE, LONG_SENTENCES = 0.01, 200
"""Some paragraphs are longer than any network is shown."""
LOOKALIKE_SHARE = 0.04
"""Paragraphs that look like titles, as the lines of some tables do."""
WORDS_AT_ONCE = 1024


def spell(number: int) -> str:
    """Write a number in syllables, each number its own word."""
    syllables = []
    while True:
        number, rest = divmod(number, len(ONSETS) * len(VOWELS))
        onset, vowel = divmod(rest, len(VOWELS))
        syllables.append(ONSETS[onset] + VOWELS[vowel])
        if not number:
            return "".join(syllables)
        number -= 1


class Dice:
    """Random draws of one article, in order."""

    def __init__(self, stream: RandomStream, article: int) -> None:
        self._throws = (
            float(word) * 2.0**-64
            for lane in count()
            for word in stream.words(article, WORDS_AT_ONCE, lane) >> 11 << 11
        )

    def happens(self, share: float) -> bool:
        """Return true with this probability."""
        return next(self._throws) < share

    def below(self, bound: int) -> int:
        """Return one of 0 … bound − 1."""
        return int(next(self._throws) * bound)

    def rank(self, weights: list[float]) -> int:
        """Return an index with probability proportional to its weight."""
        return bisect(weights, next(self._throws) * weights[-1])


def zipf(num_words: int) -> list[float]:
    """Sum up the weights 1, 1/2, 1/3 and so on."""
    return list(accumulate(1 / rank for rank in range(1, num_words + 1)))


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """Articles about invented things, in three parts that share no paragraph.

    Words are Zipfian. There is something to learn at every distance: a verb agrees with a subject
    that stands before a relative clause, nouns keep to their paragraph's topic, and the name that
    its article is about comes back in every paragraph. As that name is never used twice, no two
    parts have a paragraph in common.

    Args:
        num_paragraphs: Paragraphs of the training part.
        num_held_out: Paragraphs of each of the two others.
        num_words: Distinct words, roughly: half are nouns, the rest verbs and adjectives.
        seed: Which text.
    """

    num_paragraphs: int = 2000
    num_held_out: int = 200
    num_words: int = 600
    seed: int = 0

    def sources(self) -> Mapping[str, str]:
        """Return an empty mapping: no file is read."""
        return {}

    def lines(self, split: Split) -> Iterator[str]:
        """Return the raw lines of a part, without their line feeds."""
        wanted = self.num_paragraphs if split == "train" else self.num_held_out
        stream = RandomStream(self.seed, f"grammar words={self.num_words}", Purpose.TRAIN)
        yield " "
        for article in count(SPLITS.index(split), len(SPLITS)):
            if not wanted:
                return
            dice = Dice(stream, article)
            name = f"{spell(article).capitalize()} {self._noun(dice, None)}"
            yield from (f" = {name} = ", " ")
            for section in range(1 + dice.below(3)):
                if section and wanted:
                    signs = "= " * (2 + dice.below(2))
                    yield from (f" {signs}{self._noun(dice, None)} {signs}", " ")
                size = min(wanted, 1 + dice.below(4))
                yield from self._section(dice, name, size)
                wanted -= size
                if size:
                    yield " "

    def _section(self, dice: Dice, name: str, size: int) -> Iterator[str]:
        for number in range(size):
            # A lone line that looks like a heading would be one.
            if number and dice.happens(LOOKALIKE_SHARE):
                yield f" = {name} {dice.below(10**6)} = "
            else:
                yield f" {self._paragraph(dice, name)} "

    def _paragraph(self, dice: Dice, name: str) -> str:
        topic = dice.below(NUM_TOPICS)
        size = LONG_SENTENCES if dice.happens(LONG_SHARE) else 1 + dice.below(6)
        opening = f"{name} is a {self._noun(dice, topic)} of {dice.below(90) + 10} @,@ 000 ."
        return " ".join([opening, *(self._sentence(dice, topic, name) for _ in range(size))])

    def _sentence(self, dice: Dice, topic: int, name: str) -> str:
        plural = dice.happens(0.4)
        subject = self._noun(dice, topic) + ("en" if plural else "")
        words = ["The", subject]
        if dice.happens(0.3):
            words[1:1] = [self._adjective(dice), "@-@", self._adjective(dice)]
        if dice.happens(0.4):
            words += ["that", "the", self._noun(dice, topic), self._verb(dice) + "th", ","]
        words += [self._verb(dice) + ("" if plural else "th"), "the", self._noun(dice, topic)]
        if dice.happens(0.2):
            words += ["of", name]
        if dice.happens(0.2):
            words += [ADVERBS[dice.below(len(ADVERBS))]]
        if dice.happens(0.1):
            words += ["for", str(dice.below(10)), "@.@", str(dice.below(10)), "days"]
        return " ".join([*words, "."])

    @cached_property
    def _weights(self) -> tuple[list[float], list[float], list[float]]:
        nouns, verbs = self.num_words // 2, self.num_words // 4
        return zipf(nouns), zipf(nouns // NUM_TOPICS), zipf(verbs)

    def _noun(self, dice: Dice, topic: int | None) -> str:
        everywhere, here, _ = self._weights
        if topic is not None and dice.happens(TOPIC_SHARE):
            return spell(4 * (NUM_TOPICS * dice.rank(here) + topic))
        return spell(4 * dice.rank(everywhere))

    def _verb(self, dice: Dice) -> str:
        return spell(4 * dice.rank(self._weights[2]) + 1)

    def _adjective(self, dice: Dice) -> str:
        return spell(4 * dice.rank(self._weights[2]) + 2) + "ish"
