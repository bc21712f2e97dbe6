"""The values of a session's own keywords: wrong ones are named before anything is sent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from predsession import PredictionSession, SourceError
from predsession.checks import check_connection, check_token, project_of, retry_policy
from predsession.http.transport import ConnectionOptions

NOWHERE = "http://127.0.0.1:9"
PICTURE = np.zeros((8, 8), np.uint8)


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("timeout", 0), ("timeout", -1), ("timeout", "x"), ("timeout", float("nan")),
        ("timeout", float("inf")),
        ("connect_timeout", 0), ("connect_timeout", "x"), ("verify", "/no/such"), ("cert", "/no/such"),
        ("token", "tök€n"), ("token", "a\nb"), ("token", " x "), ("token", 5), ("proxies", "http://p"),
        ("batch_size", 0), ("batch_size", -1), ("batch_size", "8"), ("batch_size", 2.5), ("batch_size", True),
        ("idle_timeout", "x"), ("idle_timeout", None), ("idle_timeout", -1), ("max_pixels", "x"),
        ("on_error", "ignore"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(keyword: str, value: object) -> None:
    """By a ValueError that has the keyword; a token's value is in no message."""
    with pytest.raises(ValueError, match=keyword) as caught:
        PredictionSession(NOWHERE, PICTURE, **{keyword: value})
    if keyword == "token":
        assert str(value) not in str(caught.value)


def test_paths_may_be_paths(tmp_path: Path) -> None:
    """`verify` and `cert` take PathLike as well as text."""
    for name in ("ca.pem", "client.pem"):
        (tmp_path / name).write_text("")
    options = ConnectionOptions(
        verify=tmp_path / "ca.pem", cert=(tmp_path / "ca.pem", tmp_path / "client.pem")
    )
    checked = check_connection(options)
    assert checked.verify == str(tmp_path / "ca.pem")
    assert checked.cert == (str(tmp_path / "ca.pem"), str(tmp_path / "client.pem"))


def test_good_tokens_pass() -> None:
    """As they are; none is none."""
    assert check_token("abc.DEF-1~2") == "abc.DEF-1~2"
    assert check_token(None) is None


def test_an_api_bounds_the_tries() -> None:
    """As in the ancestor; without one, the policy's own number counts."""
    assert retry_policy(SimpleNamespace(token=None, retry_count=3)).tries == 3
    assert retry_policy(SimpleNamespace(token=None, retry_count=0)).tries == 1
    assert retry_policy(None) == retry_policy(SimpleNamespace(token=None, retry_count=None))


def test_a_datasets_project_is_asked_of_the_api() -> None:
    """`api.dataset.get_info_by_id`, as a Supervisely Api has it."""
    api = SimpleNamespace(
        dataset=SimpleNamespace(get_info_by_id=lambda one: SimpleNamespace(project_id=one * 10))
    )
    assert project_of(3, api, url=None, token=None, options=ConnectionOptions()) == 30
    with pytest.raises(SourceError, match="dataset 3"):
        project_of(3, None, url=NOWHERE, token=None, options=ConnectionOptions(connect_timeout=0.5))


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"input": PICTURE, "tracking": True}, "tracking"),
        ({"input": PICTURE, "stride": 2}, "stride"),
        ({"input": PICTURE, "upload_mode": "append"}, "upload_mode"),
        ({"image_id": 3, "stride": 2}, "stride"),
        ({"image_id": "x"}, "image_id"),
        ({"image_ids": []}, "image_ids"),
        ({"image_id": 3, "upload_mode": "overwrite"}, "append, replace, create, iou_merge"),
        ({"image_id": 3, "iou_merge_threshold": 0.5}, "iou_merge"),
        ({"video_ids": [1, 2]}, "one video at a time"),
        ({"project_ids": [1, 2]}, "one project at a time"),
        ({"video_id": 1, "end_frame": 9, "num_frames": 3}, "end_frame"),
        ({"video_id": 1, "stride": 0}, "stride"),
        ({"video_id": 1, "upload_mode": "append"}, "upload_mode is for images"),
        ({"image_id": 3, "upload_mode": "iou_merge", "iou_merge_threshold": "abc"}, "from 0 to 1"),
        ({"image_id": 3, "upload_mode": "create", "output_project_id": 4}, "output_project_id"),
        ({"video_id": 1, "direction": "up"}, "direction"),
    ],
)
def test_options_that_do_not_go_with_the_source(keywords: dict[str, object], words: str) -> None:
    """Are refused before anything is sent, in words that name them."""
    with pytest.raises(SourceError, match=words):
        PredictionSession(NOWHERE, **keywords)


def test_datasets_of_two_projects_are_refused() -> None:
    """As in the ancestor."""
    infos = {1: 10, 2: 20}
    api = SimpleNamespace(
        token=None,
        retry_count=None,
        dataset=SimpleNamespace(get_info_by_id=lambda one: SimpleNamespace(project_id=infos[one])),
    )
    with pytest.raises(SourceError, match=r"\[10, 20\]"):
        PredictionSession(NOWHERE, dataset_ids=[1, 2], api=api)
