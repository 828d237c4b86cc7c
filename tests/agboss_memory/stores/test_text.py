"""Texts round-trip, whatever they hold."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agboss_memory.stores.text import decode_optional, decode_text, encode_optional, encode_text

_TEXTS = st.text(st.one_of(st.sampled_from("\x00\x10\ud800\udfff0a"), st.characters(exclude_categories=())))


@settings(deadline=None)
@given(_TEXTS)
def test_b094_text_round_trips_and_can_be_stored(text: str) -> None:
    stored = encode_text(text)
    assert decode_text(stored) == text
    assert "\x00" not in stored
    stored.encode()


@settings(deadline=None)
@given(_TEXTS, _TEXTS)
def test_b101_different_texts_stay_different(one: str, other: str) -> None:
    assert (encode_text(one) == encode_text(other)) == (one == other)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs", "Cc"))))
def test_plain_text_is_stored_as_it_is(text: str) -> None:
    assert encode_text(text) is text
    assert decode_text(text) is text


def test_none_passes() -> None:
    assert encode_optional(None) is decode_optional(None) is None
    assert decode_optional(encode_optional("\x00")) == "\x00"
