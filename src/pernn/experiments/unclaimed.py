"""What the texts say of their results that no claim judges, each with the reason."""

from dataclasses import dataclass

from .predicates import Place


@dataclass(frozen=True)
class Unclaimed:
    """A statement of the texts that became no claim.

    Attributes:
        experiment: Whose records come nearest to it.
        statement: What the text says, in our words.
        source: Where.
        reason: Why it is not judged.
    """

    experiment: str
    statement: str
    source: Place
    reason: str


UNCLAIMED = (
    Unclaimed(
        "vocabulary_extension",
        "The encoded network has learnt the general rule and updates only its dictionary.",
        Place("v1", "section 5.1"),
        "an interpretation; what it predicts is judged as `gain_larger_under_extension`",
    ),
    Unclaimed(
        "dual_frequency",
        "The encoded networks' nearly perfect accuracy holds in most cases.",
        Place("v3", "section 2.2"),
        "the text names one exception only, so `encoded_nearly_perfect_*` ask for all others and "
        '`encoded_early_all_rare_gru` for the exception; "most" itself has no number',
    ),
    Unclaimed(
        "gradient_stability",
        "Consistent gradients over different disturbants make learning succeed.",
        Place("v3", "section 2.3"),
        "the premise of the analysis; a figure shows similarity against accuracy, and no statement "
        "says how closely they go together",
    ),
    Unclaimed(
        "gradient_stability",
        "The S4D model's gradients do not explain its loss of accuracy among Rare disturbants.",
        Place("v5", "sections 4.3 and 5.3"),
        "a conclusion from `difference_gone_s4d` and `disturbants_matter_s4d`, which are judged",
    ),
    Unclaimed(
        "delayed_addition",
        "The task is too hard for GRUs, even with L = 16.",
        Place("v3", "appendix A.1"),
        "no trial of a GRU and no number is reported",
    ),
    Unclaimed(
        "sorting",
        "Wrong answers in sorting are wrong inventories, as the outputs ascend all the same.",
        Place("v1", "appendix C.2"),
        "an interpretation of `ascends_*`",
    ),
    Unclaimed(
        "sorting",
        "The Elman network's outputs ascend without losing their variety.",
        Place("v1", "appendix C.2"),
        "the text does not say how variety was measured",
    ),
    Unclaimed(
        "variable_length",
        "The encoding's use is not limited to tasks whose timing is known.",
        Place("v3", "appendix B"),
        "a conclusion from `encoding_helps_lstm`, which is judged",
    ),
    Unclaimed(
        "alternative_encodings",
        "The learned and the random encoding help with variable length.",
        Place("v3", "Fig. 11"),
        "shown in the figure at most; the text speaks of their helping with fixed length only",
    ),
    Unclaimed(
        "alternative_encodings",
        "The sinusoidal encoding is more robust to variations in length than the others.",
        Place("v3", "appendix C"),
        "the same as `advantage_over_*_larger_with_variable_length`",
    ),
    Unclaimed(
        "autoregressive",
        "In sorting, the feedback of the truth narrows the range of what can follow.",
        Place("v1", "appendix C.2"),
        "is said in principle; in sorting the LSTM that is fed the truth is not compared with the "
        "vanilla one",
    ),
    Unclaimed(
        "infinite_vocabulary",
        "The distributions of the cosine similarity over tokens, quartile by quartile.",
        Place("v1", "Fig. 9"),
        "a figure without numbers; the report draws the same, over all seeds' tokens",
    ),
    Unclaimed(
        "copying_memory",
        "Learning is unstable, with the encoding or without: the error bars are wide.",
        Place("v1", "appendix C.1"),
        "how wide is not said; what makes them wide is judged as `all_or_nothing_*`",
    ),
    Unclaimed(
        "copying_memory",
        "The encoding's benefit is confined to larger vocabularies; memory does not last longer.",
        Place("v1", "section 5.1 and appendix C.1"),
        "a conclusion from `no_help_lstm` here and from the claims of `input_length`",
    ),
    Unclaimed(
        "language_modelling",
        "How much the encoding helps depends on the task.",
        Place("v5", "section 5.3"),
        "no measure across tasks is given; `smaller_gain_*` of sorting compare two of them",
    ),
    Unclaimed(
        "language_modelling",
        "Minimum and maximum test perplexity of five trials.",
        Place("v5", "Table 1"),
        "extremes of five trials have no useful interval; the means are judged as `worse_at_last`",
    ),
)
"""In the order of the experiments."""
