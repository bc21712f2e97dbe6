"""Texts that a message and a header can hold."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from predsession.server.shots import error_text
from predsession.server.texts import LONGEST, encodable, for_header, named, shortened
from predsession.wire.edge import inference_pb2 as pb

TEXTS = ["", "plain", "a\ud800b", "\U0001f600" * 5000, "\ud800" * 5000, "%" * 5000, "a\0\n\x7f", "é" * 5000]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_fit(text: str) -> None:
    """Whatever it is, a message takes it, and a status takes less than half of what gRPC's headers may."""
    for made in (encodable(text), shortened(text), error_text({"message": text}), for_header(text)):
        pb.Status(message=made).SerializeToString()
    assert len(shortened(text)) <= LONGEST
    assert len(quote(for_header(text), safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}")) < 4096


def test_what_is_kept() -> None:
    """A short text stays what it is; half a character is written out; of a long one the beginning stays."""
    assert [made("größe 5 %") for made in (encodable, shortened, for_header)] == ["größe 5 %"] * 3
    assert encodable("a\ud800") == "a\\ud800"
    assert shortened("x" * 11, 10) == "x" * 9 + "…"
    assert for_header("é" * 999).endswith("éé...")


def test_names() -> None:
    """Ten are named, the others are counted."""
    assert named(["a", "b"]) == "a, b"
    assert (
        named([str(number) for number in range(500_000)])
        == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... and 499990 more"
    )
