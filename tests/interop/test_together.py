"""Clients on their server at once, all with files of the same names: nobody gets another's results."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from interop.client_process import TheirClient
from interop.pictures import spots, write_pictures
from interop.their_server import TheirServer, assert_all_equal, until

from predsession import PredictionSession

COUNT = 48
SLOW = 0.01
"""Seconds that a picture takes, so that the clients' jobs overlap."""


def same_names(folder: Path, count: int, *, first: int) -> list[Path]:
    """Write other pictures under the same names, ``image_0.png`` and on, which their client gives arrays."""
    paths = write_pictures(folder, count, first=first, suffix=".png")
    return [path.rename(folder / f"image_{number}.png") for number, path in enumerate(paths)]


def run(url: str, source: object, key: str) -> list[object]:
    """Run a session to its end."""
    with PredictionSession(url, source, key=key, delay=SLOW, batch_size=4) as session:
        return list(session)


def test_two_of_ours(theirs: TheirServer, tmp_path: Path) -> None:
    """Each gets its own; every picture is computed once."""
    folders = [same_names(tmp_path / str(first), COUNT, first=first) for first in (0, 1000)]
    keys = [f"two of ours, {number}, {theirs.mode}" for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, theirs.url, paths, key) for paths, key in zip(folders, keys, strict=True)]
    for future, paths, key in zip(runs, folders, keys, strict=True):
        assert_all_equal(future.result(), theirs.direct(paths))
        assert theirs.computed(key) == COUNT
    assert theirs.live() == []


@pytest.mark.parametrize("kind", ["folder", "array"])
def test_one_of_ours_beside_one_of_theirs(
    theirs: TheirServer, client: TheirClient, tmp_path: Path, kind: str
) -> None:
    """While their client's job is under way, ours runs with the same names; both get their own."""
    mine = same_names(tmp_path / "ours", COUNT, first=0)
    yours = same_names(tmp_path / "theirs", COUNT, first=2000)
    key = f"theirs beside ours, {kind}, {theirs.mode}"
    keywords = {"key": key, "delay": 6 * SLOW, "batch_size": 4}
    client.start("session", theirs.url, input=str(yours[0].parent), keywords=keywords)
    until(lambda: theirs.computed(key) > 0, "their client's first picture")
    sources = mine if kind == "folder" else [spots(number) for number in range(COUNT)]
    ours = run(theirs.url, sources, key="ours")
    before_its_end = theirs.computed(key) < COUNT
    answer = client.read()
    assert before_its_end, "ours ended when theirs had ended: they were not together"
    assert_all_equal(ours, theirs.direct(mine))
    truths = theirs.direct(Path(name) for name in answer["names"])
    np.testing.assert_array_equal(
        [one["scores"][0] for one in answer["predictions"]], [truth.scores[0] for truth in truths]
    )
