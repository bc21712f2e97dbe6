"""Recorded traffic of Supervisely's client and server, sent again to ours: the same statuses, the same keys.

What differs is in the table below, with its reason, and in docs/protocol.md. `samples/recorded_traffic.json`
has the requests and the answers, of a server in development and of one in production. Left out are only the
bytes of files and masks, all but the first items of long lists, and calls that were repeated word for word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from differences import differences
from replay import Finding, Gate, Replay, clip, picture
from server_kit import Caller, Server

HERE = Path(__file__).parents[1]
RECORDED: dict[str, list[Any]] = json.loads((HERE / "samples" / "recorded_traffic.json").read_text())
ZOO = json.loads((HERE / "samples" / "geometry_zoo.json").read_text())
CHOSEN_FRAMES = "probe_dev_frames"
SCENARIOS = [name for name in RECORDED if name != CHOSEN_FRAMES]
ANY = r".*"


class Difference(NamedTuple):
    """What may differ: on which of our servers, in which scenario, at which call, and why."""

    servers: str
    scenario: str
    call: str
    what: str
    why: str


DIFFERENCES = [
    Difference(
        "stock|plain", "probe_(dev|prod)_calls", "tracking_settings", r"\.botsort\..*: only (there|here)",
        "the settings are those of the tracker that runs here; Supervisely's that mean nothing are let pass",
    ),
    Difference(
        "plain", "probe_(dev|prod)_calls", "tracking_settings", r"\.bytetrack: only here",
        "more than one tracker",
    ),
    Difference(
        "stock|plain", "probe_prod_calls", "session_info(_nobody)?", r"\.session_id: number there, null here",
        "no platform has given it a number",
    ),
    Difference("plain", ANY, "(get_)?session_info(_nobody)?", r"\.predsession: only here", "the extension"),
    Difference("plain", ANY, ANY, r".*\.objects\[\]\.box: only here", "the extension's float_boxes"),
    Difference(
        "stock|plain", "probe_(dev|prod)_calls", "deploy_info|list_pretrained_models",
        "status: 500 there, 200 here", "the recorded server had neither a checkpoint nor a table of models",
    ),
    Difference(
        "stock|plain", "probe_(dev|prod)_uploads", "sync_image_url", "status: 500 there, 403 here",
        "ours fetches nothing, and says so",
    ),
    Difference(
        "stock|plain", "probe_dev_uploads", "video_bad", "status: 200 there, 500 here",
        "a file that is no clip is refused at once, not by a job that fails",
    ),
    Difference(
        "stock", "probe_dev_uploads", r"name_\.\.\|\.\.\|esc\.jpg", "status: 200 there, 500 here",
        "theirs writes where the name points, out of its folder; ours has no files of such names",
    ),
    Difference(
        "plain", "probe_dev_uploads", r"name_sub\|dir\|x\.jpg", "status: 500 there, 200 here",
        "a name is a label, whatever it holds",
    ),
    Difference(
        "plain", "dir_300", "get_inference_progress|pop_inference_results", ANY,
        "there is no cache of 256 pictures: the job does not fail, it is finished",
    ),
    Difference(
        "plain", "early_stop_images", "get_inference_status", r".*(stage|status): 'Running .* here",
        "a stop reaches a job of pictures",
    ),
    Difference(
        "stock|plain", "video_tracking_default", "pop_inference_results|get_inference_result", ANY,
        "theirs could not fetch weights for its re-identification; ours needs none: the job is finished",
    ),
    Difference(
        "stock|plain", "probe_prod_.*", ANY, r".*\.objects\[\]: \w+ only there",
        "a model has one kind of geometry here; see test_geometries for those it may have",
    ),
]  # fmt: skip


def servers(folder: Path, arguments: list[str]) -> Iterator[tuple[Server, Gate]]:
    """Run a server with a model that waits for us."""
    gate = Gate(folder)
    with Server(*arguments, env={"REPLAY_FOLDER": str(folder)}) as server:
        yield server, gate


def model(name: str) -> str:
    """Return a model's target."""
    return f"{HERE / 'replay_model.py'}:{name}"


@pytest.fixture(scope="module", params=["stock", "plain"])
def kind(request: pytest.FixtureRequest) -> str:
    """Our server as it imitates theirs, and as it is."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def development(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Gate]]:
    """One whose faults are a plain text."""
    words = [model("Masks"), "--plain-errors", *(["--stock"] if kind == "stock" else [])]
    yield from servers(tmp_path_factory.mktemp("development"), words)


@pytest.fixture(scope="module")
def production(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Gate]]:
    """One whose faults are JSON."""
    words = [model("SureMasks"), *(["--stock"] if kind == "stock" else [])]
    yield from servers(tmp_path_factory.mktemp("production"), words)


@pytest.fixture(scope="module")
def replayed(
    kind: str, development: tuple[Server, Gate], production: tuple[Server, Gate]
) -> dict[str, list[Finding]]:
    """Send every scenario again; return what differed."""
    found = {}
    for name in SCENARIOS:
        server, gate = production if name.startswith("probe_prod") else development
        found[name] = Replay(server.url, gate, name).run(RECORDED[name])
    return found


def covers(difference: Difference, kind: str, finding: Finding) -> bool:
    """Whether the table allows what was found."""
    patterns = zip(difference[:4], (kind, *finding), strict=True)
    return all(re.fullmatch(pattern, text) for pattern, text in patterns)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_answers(kind: str, replayed: dict[str, list[Finding]], name: str) -> None:
    """Status by status, key by key, but for what the table lists."""
    unknown = [one for one in replayed[name] if not any(covers(each, kind, one) for each in DIFFERENCES)]
    assert not unknown


def test_the_table_is_true(kind: str, replayed: dict[str, list[Finding]]) -> None:
    """Every difference it lists for this server is there: none is an excuse for what may come."""
    found = [one for findings in replayed.values() for one in findings]
    listed = [each for each in DIFFERENCES if re.fullmatch(each.servers, kind)]
    assert len(listed) > 5
    assert [each for each in listed if not any(covers(each, kind, one) for one in found)] == []


def test_the_replay_sees_differences() -> None:
    """Every kind of difference is told."""
    theirs = {"a": 1, "b": [{"c": None}], "stage": "Finished", "d": [], "e": "text"}
    ours = {"a": "1", "b": [{"c": {}, "f": 0}], "stage": "Error", "d": [1]}
    assert sorted(differences(theirs, ours)) == [
        ".a: number there, text here",
        ".b[].c: null there, object here",
        ".b[].f: only here",
        ".d[]: nothing there, something here",
        ".e: only there",
        ".stage: 'Finished' there, 'Error' here",
    ]


OTHER_FRAMES = {
    '{"framesCount": 60}': list(range(40)),
    '{"startFrameIndex": 35, "framesCount": 10}': list(range(35, 40)),
    '{"startFrameIndex": 10}': list(range(10, 40)),
    '{"start_frame_index": 10, "frames_count": 3}': [10, 11, 12],
    '{"start_frame": 5, "num_frames": 3, "end_frame": 9}': None,
}
"""What ours answers where it does not imitate theirs: it clamps to the clip, reads these names too, and
refuses (None) what says twice where to end. Theirs fails with a KeyError, or answers the whole clip."""


@pytest.mark.parametrize("case", RECORDED[CHOSEN_FRAMES], ids=lambda case: json.dumps(case["state"]))
def test_chosen_frames(kind: str, development: tuple[Server, Gate], case: dict[str, Any]) -> None:
    """The frames that theirs answered, and its error where there are not so many."""
    server, _ = development
    asked = json.dumps(case["state"])
    frames, failure = case["frames"], case["exception"]
    if kind == "plain" and asked in OTHER_FRAMES:
        frames, failure = OTHER_FRAMES[asked], None
    with Caller(server.url) as caller:
        reply = caller.upload([("s.mp4", clip())], endpoint="inference_video_async", **case["state"])
        assert reply.status_code == (400 if frames is None else 200)
        if frames is not None:
            items, last = caller.drain(reply.json()["inference_request_uuid"])
            assert [item["frame_index"] for item in items] == frames
            assert (last["exception"] or {}).get("type") == failure


GEOMETRIES = {"rectangle": "Boxes", "bitmap": "Masks", "graph": "Points"}


def test_geometries(tmp_path: Path) -> None:
    """Each that a model of ours may have, as their server writes it in classes and in objects."""
    words = [word for name, made in GEOMETRIES.items() for word in ("--model", f"{name}={model(made)}")]
    classes = {one["shape"]: one for one in ZOO["get_model_meta"]["classes"]}
    objects = ZOO["pop_inference_results"]["pending_results"][0]["annotation"]["objects"]
    for server, _ in servers(tmp_path, words):
        for name in GEOMETRIES:
            meta = requests.post(f"{server.url}/{name}/get_model_meta", timeout=30).json()
            assert list(differences([classes[name]], meta["classes"][:1])) == []
            files = {"files": ("one.jpg", picture(1))}
            item = requests.post(f"{server.url}/{name}/inference_image", files=files, timeout=30).json()
            theirs = [one for one in objects if one["geometryType"] == name]
            found = set(differences(theirs, item["annotation"]["objects"]))
            assert found == {"[].box: only here"}, name
