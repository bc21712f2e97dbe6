"""Settings of a submit: completed, understood under their names, refused by name."""

from __future__ import annotations

import pytest

from predsession.server.models.card import ModelCard
from predsession.server.refusal import Refusal
from predsession.server.settings import complete_settings
from predsession.wire.jsontypes import JSON

CARD = ModelCard(
    ("cat", "dog"), "rectangle", {"conf": 0.3, "flip": False, "sizes": [1]}, 4, "object detection"
)


def test_defaults_are_filled_in() -> None:
    """What is not given has the model's default; all classes count."""
    expected = {"conf": 0.3, "flip": False, "sizes": [1], "classes": None}
    assert complete_settings(None, CARD, strict=True) == expected
    assert complete_settings({"conf": None, "classes": "all"}, CARD, strict=True) == expected


@pytest.mark.parametrize("name", ["conf", "confidence", "confidence_threshold", "confidence_thresh"])
@pytest.mark.parametrize("own", ["conf", "confidence_threshold", None])
def test_conf_has_four_names(name: str, own: str | None) -> None:
    """Whatever the caller says, it arrives under the model's own name, or as conf."""
    card = ModelCard(("cat",), "rectangle", {own: 0.1} if own else {}, None, "object detection")
    assert complete_settings({name: 0.7}, card, strict=True) == {own or "conf": 0.7, "classes": None}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"flop": True}, "no setting 'flop'; did you mean 'flip'?"),
        ({"zzz": 1}, "no setting 'zzz'; it has conf, flip, sizes"),
        ({"flip": 1}, "'flip' is 1; it must be true or false"),
        ({"conf": "high"}, "'conf' is 'high'; it must be a number"),
        ({"conf": True}, "it must be a number"),
        ({"conf": float("nan")}, "it must be a number"),
        ({"sizes": 3}, "it must be a list"),
        ({"classes": "cat"}, "a list of names"),
        ({"classes": ["cat", "cow"]}, "no class 'cow'"),
    ],
)
def test_mistakes_are_refused_by_name(settings: dict[str, JSON], words: str) -> None:
    """To those who ask for the extension each mistake is a 400 that names it; others' are ignored."""
    with pytest.raises(Refusal) as caught:
        complete_settings(settings, CARD, strict=True)
    assert caught.value.status == 400
    assert words in str(caught.value.body)
    assert complete_settings(settings, CARD, strict=False) == complete_settings({}, CARD, strict=False)


def test_settings_that_are_no_object() -> None:
    """Anything but an object is refused, from everybody."""
    for settings in ([], "conf", 3):
        with pytest.raises(Refusal):
            complete_settings(settings, CARD, strict=False)


def test_stock_keys_are_no_mistakes() -> None:
    """The keys that a stock client may send to any model are taken."""
    given: dict[str, JSON] = {"inference_mode": "full_image", "sliding_window_mode": "none", "deploy": "a"}
    complete_settings(given, CARD, strict=True)
