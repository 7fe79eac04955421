"""Work without a look for garbage leaves the collector as it was."""

import gc
from contextlib import suppress

import pytest

from pernn.lab.store import gc_paused


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_as_it_was_even_after_an_error(collecting: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with suppress(KeyError), gc_paused(), gc_paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()
