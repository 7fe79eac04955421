"""The list of experiments: names and questions, without importing any of them."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

from pernn.lab.config import installed

GROUP = "pernn.experiments"
"""Entry point group in which other packages register an `Experiment` object."""
SINGLE = "train"
"""What trials of no sweep, as of `pernn train`, are called where one is named."""


@dataclass(frozen=True)
class Entry:
    """Place and question of an experiment."""

    question: str  # one sentence
    source: str  # where the paper asks it: arXiv version, then figure or section


SHARED = {
    "vocabulary_size": "input_length constant_information vocabulary_extension infinite_vocabulary",
    "other_rules": "delayed_addition sorting predecessor_query copying_memory short_waits",
    "alternative_encodings": "double_vanilla carry clock_period",
    "other_trainings": "more_training other_optimizers other_optimizers_gru",
    "learning_rate": "tuned_vocabulary_size",
    "temperature": "factor_or_exponent",
    "who_needs_a_clock": "scaffold transformer",
    "gradient_stability": "descent longer_gradients",
    "dual_frequency": "zipf",
    "variable_length": "longer_inputs",
    "language_modelling": "real_text",
}
MODULES = {name: module for module, names in SHARED.items() for name in names.split()}
"""Module here that has an experiment, as a constant of its name, if it is not called so itself."""

OF_FIG_2 = "ours; of v3, Fig. 2; v1, Fig. 2"
"""Where the paper has what most of our own questions are after."""

CATALOGUE = {
    "vocabulary_size": Entry(
        "How large a vocabulary can a recurrent network reverse, with and without an encoding?",
        "v3, Fig. 2; v1, Fig. 2; v5, section 4.1",
    ),
    "input_length": Entry(
        "Does the encoding help with longer inputs, as it does with larger vocabularies?",
        "v1, Fig. 3",
    ),
    "constant_information": Entry(
        "Does the encoding help more with many different tokens than with long inputs, at equal "
        "K^L?",
        "v1, Fig. 4",
    ),
    "vocabulary_extension": Entry(
        "Does a pretrained network take up new tokens more easily with the encoding?",
        "v1, section 4.2 and Fig. 5",
    ),
    "dual_frequency": Entry(
        "Are rare tokens hard to retrieve, or do they make others hard to retrieve?",
        "v3, Fig. 3; v5, section 4.2",
    ),
    "gradient_stability": Entry(
        "Do rare tokens destabilise the gradients of networks without an encoding?",
        "v3, Fig. 5; v5, section 4.3",
    ),
    "delayed_addition": Entry(
        "Does the encoding help to reverse a sequence and add another one to it at once?",
        "v3, Fig. 7",
    ),
    "sorting": Entry(
        "Does the encoding help where the order of the inputs does not matter?",
        "v3, Fig. 8; v1, Fig. 12",
    ),
    "predecessor_query": Entry(
        "Does the encoding help to tell which token stood before a given one?", "v5, appendix A.3"
    ),
    "variable_length": Entry(
        "Does the encoding help where the time of an answer is not known beforehand?",
        "v3, Fig. 9; v1, Fig. 6",
    ),
    "alternative_encodings": Entry(
        "Must the encoding be sinusoidal, or does any encoding help?", "v3, Figs. 10 and 11"
    ),
    "double_vanilla": Entry(
        "Is it the encoding that helps, or the parameters that come with it?", "v5, appendix C"
    ),
    "autoregressive": Entry(
        "Does a network do without an encoding if it is fed its own outputs?", "v1, Figs. 8 and 13"
    ),
    "infinite_vocabulary": Entry(
        "Does the encoding help with vectors, of which there are infinitely many?", "v1, Fig. 9"
    ),
    "copying_memory": Entry("Does the encoding help to remember for longer?", "v1, Fig. 11"),
    "short_waits": Entry(
        "Does the encoding help to remember for a short while?", "ours; of v1, Fig. 11"
    ),
    "more_training": Entry(
        "Do vanilla networks catch up with more training or larger batches?",
        "v3, section 4.2; v5, section 4.1",
    ),
    "learning_rate": Entry(
        "Does the encoding still help if each network has its own best learning rate?", OF_FIG_2
    ),
    "tuned_vocabulary_size": Entry(
        "How large a vocabulary, each network at its own best learning rate?", OF_FIG_2
    ),
    "temperature": Entry(
        "Does the encoding pay where the gradients are noisy, at high rates and small batches?",
        OF_FIG_2,
    ),
    "carry": Entry(
        "What must the encoding carry: time, a key for each item, or a drive, and in which phase?",
        "ours; of v3, Figs. 10 and 11",
    ),
    "clock_period": Entry(
        "How many steps must a clock tell apart?", "ours; of v3, Figs. 10 and 11"
    ),
    "factor_or_exponent": Entry(
        "Does the encoding save a factor of the updates, or do they grow slower with K?", OF_FIG_2
    ),
    "scaffold": Entry(
        "When is the encoding needed: early in training, late, or for every answer?", OF_FIG_2
    ),
    "descent": Entry(
        "Do gradients differ at equal accuracy, and precede the fall of the loss?",
        "ours; of v3, Fig. 5",
    ),
    "longer_gradients": Entry(
        "Does the encoding steady gradients most among rare tokens, over longer inputs?",
        "ours; of v3, Fig. 5",
    ),
    "zipf": Entry(
        "Is it rare tokens, at an equal entropy of the tokens?", "ours; of v3, Figs. 2 and 3"
    ),
    "anatomy": Entry(
        "Which wrong answers do networks give, and how do they hold tokens, at equal accuracy?",
        OF_FIG_2,
    ),
    "who_needs_a_clock": Entry(
        "Which networks need a clock: those whose gates see the state, those whose do not, or all?",
        "ours; of v3, Fig. 2; v5, section 4.1",
    ),
    "transformer": Entry(
        "Does a Transformer need the clock more than recurrent networks do?",
        "ours; of v3, section 1",
    ),
    "other_optimizers": Entry(
        "Does the gain go with Adam, or with the training of the tokens' vectors?", OF_FIG_2
    ),
    "other_optimizers_gru": Entry(
        "Is the GRU's gain Adam's, or that of trained token vectors?", OF_FIG_2
    ),
    "longer_inputs": Entry(
        "Does an encoding serve inputs longer than those it was trained with?",
        "ours; of v3, Fig. 9; v1, Fig. 6",
    ),
    "real_text": Entry(
        "Does the encoding help with a real text, and with its rare words?",
        "ours; of v5, appendix E",
    ),
    "language_modelling": Entry(
        "Does the encoding help to predict the next token of a text?", "v5, appendix E and Table 1"
    ),
}


def registered() -> dict[str, EntryPoint]:
    """Find other packages' experiments, which replace no built-in one."""
    return {name: point for name, point in installed(GROUP).items() if name not in CATALOGUE}


def experiment_names() -> list[str]:
    """List every experiment, those of other packages included."""
    return [*CATALOGUE, *registered()]
