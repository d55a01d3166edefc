"""Codes: distances, silence, and their exact decoding."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from geotheory.codes import Code
from geotheory.digits import code_length
from geotheory.errors import InvalidArgument

codes = st.builds(Code, st.integers(1, 300), st.integers(1, 5))


@given(st.integers(1, 10**40), st.integers(1, 60))
def test_length_is_the_least_that_suffices(count, bits):
    length = code_length(count, bits)
    assert (2**bits) ** length >= count
    assert length == 1 or (2**bits) ** (length - 1) < count


@given(codes)
def test_minimum_distance(code):
    words = code.words(dtype=torch.float64)
    assert words.shape == (code.count, code.length)
    assert bool((words % 2 == 1).all() if code.count else True)
    assert float(words.abs().max()) <= code.amplitude
    distances = torch.cdist(words, words).fill_diagonal_(torch.inf)
    if code.count > 1:
        assert float(distances.min()) == code.minimum_distance
    else:
        assert float(words.norm()) >= code.minimum_distance


@given(codes)
def test_logits_have_margin_two_and_silence_lies_between(code):
    words, bias = code.words(dtype=torch.float64), code.bias(dtype=torch.float64)
    assert torch.equal(bias, bias.round())
    logits = words @ words.T + bias
    right = logits.diagonal().clone()
    if code.count > 1:
        assert float((right - logits.fill_diagonal_(-torch.inf).amax(1)).min()) >= 2
    assert float(right.min()) >= code.length > code.silence
    assert float(bias.max()) <= 0 < code.silence  # logits of the origin, a missing fact


@given(codes, st.data())
def test_reading_is_the_inverse(code, data):
    items = torch.tensor(data.draw(st.lists(st.integers(-1, code.count - 1), min_size=1)))
    words = code.words(items)
    assert torch.equal(code.read(words), items)
    spoilt = words.clone()
    spoilt[0, 0] += 1
    assert int(code.read(spoilt)[0]) == (-2 if spoilt[0].any() else -1)
    beyond = Code(2**code.bits * code.count, code.bits)
    assert int(code.read(beyond.words(torch.tensor([beyond.count - 1]))[:, : code.length])[0]) in range(-2, code.count)


def test_sign_codes_need_no_bias():
    assert not Code(37).bias().any()


@pytest.mark.parametrize(("count", "bits"), [(0, 1), (4, 0), (4, 25)])
def test_bad_codes(count, bits):
    with pytest.raises(InvalidArgument):
        Code(count, bits)
