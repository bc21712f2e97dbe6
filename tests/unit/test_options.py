"""The session's keywords."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from predsession.errors import SourceError
from predsession.options import check_keywords, check_one_source, merge_settings
from predsession.session import PredictionSession

OWN = list(inspect.signature(PredictionSession.__init__).parameters)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("show_progres", "show_progress"),
        ("show_progresss", "show_progress"),
        ("recusrive", "recursive"),
        ("batch_sise", "batch_size"),
        ("setting", "settings"),
        ("classe", "classes"),
        ("imput", "input"),
        ("start_frme", "start_frame"),
        ("conff", "conf"),
        ("certs", "cert"),
        ("upload_mod", "upload_mode"),
    ],
)
def test_a_slip_of_the_finger_is_refused_with_the_right_name(wrong: str, right: str) -> None:
    """It would otherwise travel to the model in silence."""
    with pytest.raises(TypeError, match=rf"{wrong}.*{right}"):
        check_keywords({wrong: 1}, OWN)


@pytest.mark.parametrize("name", ["iou", "con", "img_size", "max_det", "delay_ms", "agnostic_nms", "url2"])
def test_the_models_own_settings_pass(name: str) -> None:
    """Other names, and short ones, are the model's business."""
    check_keywords({name: 1}, OWN)


@pytest.mark.parametrize("value", [[1], {"a": 1}, None, object()])
def test_a_keyword_that_is_no_scalar_is_refused(value: object) -> None:
    """With the way to send it all the same."""
    with pytest.raises(TypeError, match="settings="):
        check_keywords({"anchors": value}, OWN)


def test_settings_are_merged_in_order() -> None:
    """Settings, their alias, the named ones, the loose ones; what is None is left out."""
    merged = merge_settings(
        ({"a": 1, "conf": 0.1}, {"b": 2}), {"conf": 0.5, "classes": None}, {"iou": 0.7, "a": 9}
    )
    assert merged == {"a": 9, "b": 2, "conf": 0.5, "iou": 0.7}


def test_numpys_numbers_are_numbers() -> None:
    """They are sent as what they hold."""
    merged = merge_settings((), {"conf": np.float32(0.5)}, {"n": np.int64(3), "sizes": np.array([1, 2])})
    assert merged == {"conf": 0.5, "n": 3, "sizes": [1, 2]}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x"])
def test_a_setting_that_is_no_json_is_named(value: object) -> None:
    """Before anything is sent."""
    with pytest.raises(TypeError, match="weird"):
        merge_settings(({"weird": value},), {}, {})


def test_exactly_one_source() -> None:
    """The error says which were given."""
    with pytest.raises(SourceError, match="nothing to run"):
        check_one_source({"input": None, "image_id": None})
    with pytest.raises(SourceError, match="input and video_id"):
        check_one_source({"input": "a.jpg", "image_id": None, "video_id": 3})
    check_one_source({"input": "a.jpg", "image_id": None})
