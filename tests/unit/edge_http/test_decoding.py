"""What a client hears of a body that cannot be read."""

import msgspec
import pytest

from goqueue.edge.http.parts.decoding import decode
from goqueue.model.errors import Invalid

_decoder = msgspec.json.Decoder(dict[str, str])


@pytest.mark.parametrize(
    "body",
    [
        rb'{"a":"\ud800"}',
        rb'{"a":"\uD800 and more"}',
        rb'{"a":"\ud800\u0041"}',
        rb'{"a":"\udc00"}',
        rb'{"a":"\\\ud800"}',
        rb'{"a":"\ud83d\ude00\ud83d"}',
    ],
)
def test_half_of_a_surrogate_pair_is_called_that(body: bytes) -> None:
    with pytest.raises(Invalid, match="half of a surrogate pair"):
        decode(_decoder, body)


@pytest.mark.parametrize(
    "body", [rb'{"a":"\ud83d\ude00', rb'{"a":"\\ud800', b'{"a', rb'{"a":"\ud83d\ude00","b":1}']
)
def test_what_is_wrong_elsewhere_is_not_blamed_on_a_pair(body: bytes) -> None:
    with pytest.raises(Invalid) as refused:
        decode(_decoder, body)

    assert "surrogate" not in str(refused.value)


def test_a_whole_pair_and_an_escaped_backslash_are_text() -> None:
    assert decode(_decoder, rb'{"a":"\ud83d\ude00 \\ud800"}') == {"a": "\U0001f600 \\ud800"}
