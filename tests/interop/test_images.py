"""Our client, their server: every kind of source gives what their model gives when it is called directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from interop.pictures import spots, write_pictures
from interop.their_server import TheirServer, assert_all_equal, assert_equal
from PIL import Image

from predsession import ItemError, PredictionSession, connect


def test_one_image(theirs: TheirServer, tmp_path: Path) -> None:
    """By text, by PathLike, and through the handle on the model."""
    path = write_pictures(tmp_path, 1, first=3)[0]
    truth = theirs.direct([path])[0]
    for source in (path, str(path)):
        with PredictionSession(theirs.url, source) as session:
            assert_all_equal(list(session), [truth])
    with connect(theirs.url) as model:
        assert_all_equal(model.predict(path, show_progress=False), [truth])
    assert theirs.live() == []
    with connect(theirs.url) as model:
        assert_equal(model.predict_one(path), truth)


def test_a_list_of_paths(theirs: TheirServer, tmp_path: Path) -> None:
    """In the order of the list, not of the names; a path may occur twice."""
    paths = write_pictures(tmp_path, 12)
    order = [*reversed(paths), paths[4]]
    with PredictionSession(theirs.url, order) as session:
        predictions = list(session)
    assert_all_equal(predictions, theirs.direct(order))
    assert [one.path for one in predictions] == [str(path) for path in order]


@pytest.mark.parametrize("count", [30, 300])
def test_a_folder(theirs: TheirServer, tmp_path: Path, count: int) -> None:
    """More pictures than their cache of 256 takes, too; each with its own path."""
    paths = write_pictures(tmp_path, count)
    with PredictionSession(theirs.url, tmp_path) as session:
        predictions = list(session)
    assert_all_equal(predictions, theirs.direct(paths))
    assert [one.path for one in predictions] == [str(path) for path in paths]
    assert theirs.live() == []


def test_a_folder_of_more_files_than_a_request_takes(theirs: TheirServer, tmp_path: Path) -> None:
    """1,200 pictures, where their limit is 1,000 files a request."""
    paths = write_pictures(tmp_path, 1200)
    with PredictionSession(theirs.url, tmp_path, key="1200") as session:
        assert_all_equal(list(session), theirs.direct(paths))
    assert theirs.computed("1200") == 1200
    assert theirs.live() == []


def test_equal_names_in_nested_folders(theirs: TheirServer, tmp_path: Path) -> None:
    """Three folders hold the same names; every file gets its own prediction."""
    for first, folder in enumerate(("", "a", "a/b")):
        for path in write_pictures(tmp_path / folder / "x", 5, first=100 * first):
            path.rename(path.with_name(f"{int(path.stem[3:]) % 100}.jpg"))
    with PredictionSession(theirs.url, tmp_path, recursive=True) as session:
        predictions = list(session)
    paths = [Path(str(one.path)) for one in predictions]
    assert sorted(paths) == sorted(tmp_path.rglob("*.jpg"))
    assert_all_equal(predictions, theirs.direct(paths))


def test_what_is_no_file(theirs: TheirServer, tmp_path: Path) -> None:
    """Arrays, bytes, and PIL images, in one list."""
    paths = write_pictures(tmp_path, 9, suffix=".png")
    sources: list[object] = [spots(number) for number in range(3)]
    sources += [path.read_bytes() for path in paths[3:6]]
    sources += [Image.open(path) for path in paths[6:]]
    with PredictionSession(theirs.url, sources) as session:
        assert_all_equal(list(session), theirs.direct(paths))
    with PredictionSession(theirs.url, spots(1)) as session:
        assert_all_equal(list(session), theirs.direct(paths[1:2]))


def test_an_array_that_is_gray_or_has_alpha(theirs: TheirServer, tmp_path: Path) -> None:
    """It is what a picture of the same look is."""
    path = write_pictures(tmp_path, 1, suffix=".png")[0]
    gray = np.asarray(Image.open(path).convert("L"))
    Image.fromarray(gray).convert("RGB").save(path)
    alpha = np.dstack([gray, gray, gray, np.full_like(gray, 255)])
    with PredictionSession(theirs.url, [gray, gray[:, :, None], alpha]) as session:
        assert_all_equal(list(session), theirs.direct([path] * 3))


def test_urls(theirs: TheirServer, tmp_path: Path, web: str) -> None:
    """Addresses of pictures, beside a path."""
    paths = write_pictures(tmp_path, 3)
    with PredictionSession(
        theirs.url, [f"{web}/{paths[0].name}", f"{web}/{paths[1].name}", paths[2]]
    ) as session:
        predictions = list(session)
    assert_all_equal(predictions, theirs.direct(paths))
    assert predictions[0].url == f"{web}/{paths[0].name}"


def test_an_iterator(theirs: TheirServer, tmp_path: Path) -> None:
    """Pictures that are made while the session runs."""
    paths = write_pictures(tmp_path, 20, suffix=".png")
    with PredictionSession(theirs.url, (spots(number) for number in range(20))) as session:
        assert_all_equal(list(session), theirs.direct(paths))


def test_settings_and_classes(theirs: TheirServer, tmp_path: Path) -> None:
    """They reach the model by each way there is to pass them, and change what it answers."""
    paths = write_pictures(tmp_path, 16)
    plain = theirs.direct(paths)
    for keywords, settings in (
        ({"conf": 0.85}, {"conf": 0.85}),
        ({"max_objects": 1}, {"max_objects": 1}),
        ({"settings": {"max_objects": 2}}, {"max_objects": 2}),
        ({"inference_settings": {"max_objects": 1}, "conf": 0.8}, {"max_objects": 1, "conf": 0.8}),
        ({"classes": ["tall"]}, {"classes": ["tall"]}),
    ):
        with PredictionSession(theirs.url, paths, **keywords) as session:
            predictions = list(session)
        truths = theirs.direct(paths, **settings)
        assert_all_equal(predictions, truths)
        assert [truth.classes for truth in truths] != [truth.classes for truth in plain], "no effect"


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_batch_sizes(theirs: TheirServer, tmp_path: Path, batch_size: int) -> None:
    """How many pictures their model gets at once changes nothing."""
    paths = write_pictures(tmp_path, 20)
    with PredictionSession(theirs.url, paths, batch_size=batch_size) as session:
        assert_all_equal(list(session), theirs.direct(paths))


def test_what_the_model_is(theirs: TheirServer, tmp_path: Path) -> None:
    """Classes, colours, settings and state, as their server tells them."""
    meta = theirs.post("get_model_meta")
    with connect(theirs.url) as model:
        assert list(model.classes) == [one["title"] for one in meta["classes"]] == ["wide", "tall"]
        assert model.settings == theirs.post("get_custom_inference_settings")["settings"]
        assert model.info.raw == theirs.post("get_session_info")
        assert model.tracking_settings["botsort"] == theirs.post("get_tracking_settings")["botsort"]
        assert model.is_deployed()
        assert model.status()["is_deployed"] is True
    with PredictionSession(theirs.url, write_pictures(tmp_path, 1)) as session:
        assert session.model_meta.names == ("wide", "tall")
        assert [info.to_json() for info in session.model_meta.classes] == [
            {key: one[key] for key in info.to_json()}
            for info, one in zip(session.model_meta.classes, meta["classes"], strict=True)
        ]


def test_bad_files_among_good_ones(theirs: TheirServer, tmp_path: Path) -> None:
    """Their server would refuse the upload and name nothing: the good are predicted, the bad are named."""
    paths = write_pictures(tmp_path, 12)
    paths[3].write_bytes(b"")
    paths[5].write_bytes(b"this is no picture")
    paths[8].write_bytes(paths[8].read_bytes()[:200])
    with PredictionSession(theirs.url, tmp_path, on_error="yield") as session:
        outcomes = list(session)
    bad = {index: outcome for index, outcome in enumerate(outcomes) if isinstance(outcome, ItemError)}
    assert sorted(bad) == [3, 5, 8]
    assert all(paths[index].name in str(error) for index, error in bad.items())
    good = [index for index in range(12) if index not in bad]
    assert_all_equal([outcomes[index] for index in good], theirs.direct(paths[index] for index in good))
    with (
        PredictionSession(theirs.url, tmp_path) as session,
        pytest.raises(ItemError, match=paths[3].name),
    ):
        list(session)
    assert theirs.live() == []


def test_bad_files_that_only_the_server_finds(theirs: TheirServer, tmp_path: Path) -> None:
    """A file that looks right from outside: their server refuses the upload, and still the others come."""
    paths = write_pictures(tmp_path, 10, suffix=".png")
    whole = bytearray(paths[4].read_bytes())
    start = whole.index(b"IDAT") + 8
    whole[start : start + 20] = bytes(20)
    paths[4].write_bytes(bytes(whole))
    with PredictionSession(theirs.url, paths, on_error="yield") as session:
        outcomes = list(session)
    assert isinstance(outcomes[4], ItemError)
    assert paths[4].name in str(outcomes[4])
    good = [index for index in range(10) if index != 4]
    assert_all_equal([outcomes[index] for index in good], theirs.direct(paths[index] for index in good))
