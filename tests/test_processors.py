"""One spec on processors that are not at hand; `make test-processors` runs the suite on them."""

import copy

import pytest
from processors import EMULATED, complaints, compute_everything, compute_on, is_possible

from pernn.kernels import find_kernels


@pytest.fixture(scope="module")
def native():
    return compute_everything()


@pytest.mark.parametrize("name", ["avx2", "baseline-no-compiler"])
def test_results_agree_between_processors_and_name_them(name, native):
    emulated = EMULATED[name]
    if not is_possible(emulated):
        pytest.skip("this processor cannot do as much")
    if name == "avx2" and find_kernels() is None:
        pytest.skip("no compiler")
    found = compute_on(emulated)
    assert emulated.describes(found["arithmetic"])
    assert not complaints(native, found)


def test_products_that_do_not_round_would_be_noticed(native):
    other = copy.deepcopy(native)
    other["logits"]["gru bf16"] = native["logits"]["gru fp32"]
    (said,) = complaints(native, other)
    assert said == "gru bf16: logits differ by 100.0% of it"
