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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"conf": -0.1}, "'conf' is -0.1; it must be 0 to 1"),
        ({"confidence": 1.5}, "'conf' is 1.5; it must be 0 to 1"),
        ({"iou": 2}, "'iou' is 2; it must be 0 to 1"),
        ({"max_objects": -1}, "'max_objects' is -1; it must be a whole number, 0 or more"),
        ({"max_objects": 1.5}, "a whole number, 0 or more"),
        ({"conf": 0.2, "confidence": 0.3}, "conf and confidence are one; give it once"),
    ],
)
def test_numbers_out_of_their_range(settings: dict[str, JSON], words: str) -> None:
    """What a number's name forbids is refused to those who ask for the extension, not to others."""
    card = ModelCard(
        ("cat",), "rectangle", {"conf": 0.3, "iou": 0.5, "max_objects": 9}, 4, "object detection"
    )
    with pytest.raises(Refusal, match="400") as caught:
        complete_settings(settings, card, strict=True)
    assert words in str(caught.value.body)
    kept = complete_settings(settings, card, strict=False)
    name, value = settings.popitem()
    assert kept["conf" if name.startswith("conf") else name] == value
    assert complete_settings({"conf": 1, "max_objects": 0}, card, strict=True)["max_objects"] == 0


def test_a_models_own_meaning() -> None:
    """A setting whose default is no share of 1 is no share to its model."""
    card = ModelCard(("cat",), "rectangle", {"iou": 50}, 4, "object detection")
    assert complete_settings({"iou": 75}, card, strict=True)["iou"] == 75


def test_settings_that_are_no_object() -> None:
    """Anything but an object is refused, from everybody."""
    for settings in ([], "conf", 3):
        with pytest.raises(Refusal):
            complete_settings(settings, CARD, strict=False)


def test_stock_keys_are_no_mistakes() -> None:
    """The keys that a stock client may send to any model are taken."""
    given: dict[str, JSON] = {"inference_mode": "full_image", "sliding_window_mode": "none", "deploy": "a"}
    complete_settings(given, CARD, strict=True)
