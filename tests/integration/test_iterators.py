"""Sources that are iterators: taken lazily, of unknown length, one sequence."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from predsession import PredictionSession, SourceError
from predsession.server.models.pixels import box_number, number_picture

Picture = npt.NDArray[np.uint8]


def test_a_generator_is_taken_lazily(either: str) -> None:
    """An endless one is read only as far as is needed; its length is not known, and said to be so."""
    taken = []

    def frames() -> Iterator[Picture]:
        for number in itertools.count():
            taken.append(number)
            yield number_picture(number)

    with PredictionSession(either, frames()) as session:
        with pytest.raises(TypeError, match="generator"):
            len(session)
        got = [box_number(prediction.boxes[0]) for prediction in itertools.islice(session, 40)]
        assert session.progress().total is None
    assert got == list(range(40))
    assert len(taken) < 400, "a slow caller holds the generator back"


def test_a_generator_that_ends(either: str) -> None:
    """Every item gets its outcome, indexes go on from 0."""
    with PredictionSession(either, (number_picture(number) for number in range(50))) as session:
        predictions = list(session)
    assert [box_number(one.boxes[0]) for one in predictions] == list(range(50))
    assert [one.index for one in predictions] == list(range(50))
    assert predictions[7].name == "image_0007"


def test_a_wrong_item_is_told_with_its_place(either: str) -> None:
    """After everything before it."""
    values = iter([number_picture(0), number_picture(1), None])
    with PredictionSession(either, values) as session:
        got = [box_number(next(session).boxes[0]) for _ in range(2)]
        with pytest.raises(SourceError, match="item 2 of the iterator"):
            next(session)
    assert got == [0, 1]


def test_the_generators_own_exception_reaches_the_caller(either: str) -> None:
    """As it is."""

    def frames() -> Iterator[Picture]:
        yield number_picture(0)
        raise ConnectionResetError("the camera is gone")

    with PredictionSession(either, frames()) as session:
        assert box_number(next(session).boxes[0]) == 0
        with pytest.raises(ConnectionResetError, match="camera"):
            next(session)


def test_closing_does_not_wait_for_the_camera(either: str) -> None:
    """A loop that blocks for the next frame is not waited for."""
    release = threading.Event()

    def frames() -> Iterator[Picture]:
        yield number_picture(0)
        release.wait(60)

    with PredictionSession(either, frames()) as session:
        assert box_number(next(session).boxes[0]) == 0
    assert session._pipeline.shared.ledger.live == ()
    release.set()
    for thread in session._pipeline._threads:
        thread.join(10)


def test_tracking_frames_one_by_one_is_refused(either: str) -> None:
    """Never ignored: the error says what to do."""
    with pytest.raises(SourceError, match="ClipWriter"):
        PredictionSession(either, (number_picture(number) for number in range(3)), tracking=True)
    with pytest.raises(SourceError, match="ClipWriter"):
        PredictionSession(either, [number_picture(0), number_picture(1)], tracking=True)


def test_several_threads_share_a_session(either: str) -> None:
    """Each prediction goes to one of them, and all of them see the end."""
    got: list[int] = []
    ended: list[str] = []
    with PredictionSession(either, [number_picture(n) for n in range(20)], delay=0.002) as session:

        def take() -> None:
            for prediction in session:
                got.append(prediction.index)
            ended.append("ended")

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(got) == list(range(20))
    assert ended == ["ended"] * 4
