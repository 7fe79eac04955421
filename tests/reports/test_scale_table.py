"""The table of an experiment's scales says what its trials are."""

from pernn.lab.experiments import find_experiment
from pernn.lab.reports.replication import scale_table


def rows(name):
    """Title → cells of an experiment's table."""
    lines = [line.strip("| ").split(" | ") for line in scale_table(name).splitlines()]
    return {title: cells for title, *cells in lines}


def test_it_has_the_trials_of_every_scale():
    table = rows("delayed_addition")
    specs = [make() for make in find_experiment("delayed_addition").scales.values()]
    assert table["Trials"] == [f"{len(scale):,}" for scale in specs]
    assert table["Updates"] == [f"{scale[0].training.iterations:,}" for scale in specs]
    assert table["Seeds"] == ["5", "8", "5"]


def test_values_that_differ_by_core_are_led_by_it():
    table = rows("gradient_stability")
    assert table["Vocabulary size K"][1] == "GRU 64; LSTM 256; S4D 256"
    assert table["Core"] == ["GRU, LSTM", "GRU, LSTM, S4D", "GRU, LSTM, S4D"]
    assert table["Hidden size"] == ["128", "64", "512"]


def test_many_values_are_shortened_and_what_never_differs_is_left_out():
    table = rows("vocabulary_size")
    assert table["Vocabulary size K"][2] == "2, 4 … 16,384"
    assert "Held-out sequences" not in table
    assert "Held-out sequences" in rows("variable_length")
