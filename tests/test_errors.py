import pytest

from pernn import errors

ALL = [value for value in vars(errors).values() if isinstance(value, type)]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_a_pernn_error(error):
    assert issubclass(error, errors.PernnError)
    assert error.__doc__


def test_a_config_error_is_also_a_value_error():
    assert issubclass(errors.ConfigError, ValueError)


def test_the_drawn_tree_names_every_error():
    assert all(error.__name__ in errors.__doc__ for error in ALL)
