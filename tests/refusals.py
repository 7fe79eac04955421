"""Tables of what is refused, and how."""

import pytest

from pernn.errors import ConfigError


def refusals(*rows):
    """Return a test: each call is refused in one line, which matches."""

    @pytest.mark.parametrize(("call", "said"), rows)
    def test(call, said):
        with pytest.raises(ConfigError, match=said) as caught:
            call()
        # The end of a line would be shown so.
        assert "\\n" not in str(caught.value)

    return test
