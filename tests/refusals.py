"""Tables of what is refused, and how."""

import pytest

from pernn.errors import PernnError


def refusals(*rows):
    """Return a test: each call is refused in one line, which matches."""

    @pytest.mark.parametrize(("call", "said"), rows)
    def test(call, said):
        with pytest.raises(PernnError, match=said) as caught:
            call()
        assert "\n" not in str(caught.value)

    return test
