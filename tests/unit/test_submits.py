"""Submits by ids: what a platform's server is sent, compared with what the ancestor was recorded sending."""

from __future__ import annotations

import json
from pathlib import Path

import responses

from predsession.http.transport import HttpTransport
from predsession.wire.replies import parse_submitted
from predsession.wire.submits import (
    IdOptions,
    IdTarget,
    SubmitOptions,
    Tracking,
    images_by_id,
    project_by_id,
    submit_ids,
    video_by_id,
)

RECORDED = json.loads((Path(__file__).parents[1] / "samples" / "image_id_exchange.json").read_text())
OURS = {"settings", "session", "item_errors"}
"""Keys beside the recorded ones: empty settings, and the extension's, which a stock server ignores."""


def submitted(target: IdTarget, tracking: Tracking | None = None) -> dict[str, object]:
    """Send a submit through the real transport; return the JSON body that left."""
    url = "https://platform.example/net/token"
    with responses.RequestsMock() as mock:
        mock.post(f"{url}/{target.endpoint}", json=RECORDED["response"])
        call = submit_ids(SubmitOptions("s", {}), target, tracking=tracking, key="k", idempotent=False)
        reply = HttpTransport(url, token="t0ken").send(call)
        assert parse_submitted(reply) == RECORDED["response"]["inference_request_uuid"]
        body: dict[str, object] = json.loads(mock.calls[0].request.body)
    return body


def test_an_image_by_id_is_asked_for_as_the_ancestor_does() -> None:
    """Path, state and context are the recorded ones; the token, by which ids are resolved, is in the body."""
    target = images_by_id([5], IdOptions())
    body = submitted(target)
    assert f"/{target.endpoint}" == RECORDED["path"]
    state = body["state"]
    assert isinstance(state, dict)
    assert {key: value for key, value in state.items() if key not in OURS} == RECORDED["request"]["state"]
    assert body["context"] == RECORDED["request"]["context"]
    assert body["api_token"] == "t0ken"


def test_every_option_has_the_servers_name() -> None:
    """Those that are not given are not sent."""
    extra = IdOptions("iou_merge", 0.5, 7, True, "_model")
    state = submitted(project_by_id(3, [4, 5], extra))["state"]
    assert isinstance(state, dict)
    assert {key: value for key, value in state.items() if key not in OURS} == {
        "project_id": 3, "dataset_ids": [4, 5], "upload_mode": "iou_merge", "iou_merge_threshold": 0.5,
        "output_project_id": 7, "cache_project_on_model": True, "model_prediction_suffix": "_model",
    }  # fmt: skip


def test_a_tracked_video_by_id() -> None:
    """The frames in the names that the ancestor uses, the tracker beside them."""
    target = video_by_id(9, {"start_frame": 3, "end_frame": 8})
    state = submitted(target, Tracking("botsort", {"with_reid": False}))["state"]
    assert isinstance(state, dict)
    assert {key: value for key, value in state.items() if key not in OURS} == {
        "video_id": 9, "start_frame": 3, "end_frame": 8, "tracker": "botsort",
        "tracker_settings": {"with_reid": False},
    }  # fmt: skip


def test_what_writes_is_not_run_again() -> None:
    """Images that are only predicted can be; what is written back would be written twice."""
    assert images_by_id([1, 2], IdOptions()).images == (1, 2)
    assert images_by_id([1, 2], IdOptions(upload_mode="append")).images is None
