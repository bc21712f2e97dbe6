"""How arrays travel: in each format, without loss where that is promised, and with the order kept."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from predsession import PredictionSession
from predsession.inputs.encoding import COMPACT, QUICK, read_encoding
from predsession.inputs.images import prepare
from predsession.inputs.items import ArrayContent, item_at
from predsession.server.models.pixels import box_number, number_picture
from predsession.testing import FaultyServer

LOSSLESS = ("png", "webp", "bmp")
LOSSY = ("jpeg", "jpeg:90", "webp:80")
SIGNS = {"png": b"\x89PNG", "webp": b"RIFF", "bmp": b"BM", "jpeg": b"\xff\xd8\xff"}


def noise(*shape: int) -> npt.NDArray[np.uint8]:
    """Return pixels that no format can shorten."""
    return np.random.default_rng(7).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("encoding", [*LOSSLESS, *LOSSY])
def test_every_encoding_is_understood(either: str, encoding: str) -> None:
    """Colour, gray, and PIL, in the order of the source; what is sent is what was chosen."""
    source = [number_picture(0), number_picture(1)[..., 0], Image.fromarray(number_picture(2))]
    with (
        FaultyServer(either) as seen,
        PredictionSession(seen.url, source, encoding=encoding) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == [0, 1, 2]
    sign = SIGNS[encoding.partition(":")[0]]
    uploads = [call.body for call in seen.calls("inference_batch_async")]
    assert sum(body.count(b"\r\n\r\n" + sign) for body in uploads) == 3


@pytest.mark.parametrize("encoding", LOSSLESS)
@pytest.mark.parametrize("shape", [(40, 30, 3), (40, 30), (1, 1, 3), (3, 17_000, 3)])
def test_nothing_is_lost(encoding: str, shape: tuple[int, ...]) -> None:
    """Pixel by pixel; what is too large for WebP is PNG."""
    encoded = prepare(item_at(0, ArrayContent(noise(*shape))), encoding=read_encoding(encoding))
    data = encoded.open().read()
    picture = Image.open(io.BytesIO(data)).convert("RGB" if len(shape) == 3 else "L")
    assert np.array_equal(np.asarray(picture), noise(*shape))
    assert encoded.suffix == (".png" if 17_000 in shape and encoding == "webp" else f".{encoding}")


def test_quality_is_what_was_asked_for() -> None:
    """A lower one is shorter."""
    item = item_at(0, ArrayContent(noise(60, 60, 3)))
    sizes = [prepare(item, encoding=read_encoding(f"jpeg:{quality}")).nbytes for quality in (10, 50, 100)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2]


def test_the_default_goes_by_where_the_server_is() -> None:
    """A bitmap within this machine, lossless WebP beyond it."""
    from predsession.checks import encoding_for

    for near in (None, "http://127.0.0.1:8000", "http://localhost/net/x", "http://[::1]:1"):
        assert encoding_for(near, None) == QUICK
    for far in ("http://10.0.0.7:8000", "https://models.example/net/x"):
        assert encoding_for(far, None) == COMPACT
    assert encoding_for(None, "png") == read_encoding("png")


@pytest.mark.parametrize("encoding", ["gif", "png:3", "jpeg:0", "jpeg:101", "jpeg:", "jpeg:x", "", 3])
def test_what_is_no_encoding(encoding: str) -> None:
    """Refused with what there is, before anything is sent."""
    with pytest.raises(ValueError, match="encoding must be 'png'"):
        PredictionSession("http://127.0.0.1:9", number_picture(0), encoding=encoding)


def test_many_arrays_keep_their_order(either: str) -> None:
    """Encoded on several threads: each prediction is still its own array's."""
    pictures = [number_picture(number) for number in range(60)]
    with PredictionSession(either, pictures, encoding="png") as session:
        assert [box_number(one.boxes[0]) for one in session] == list(range(60))


@pytest.mark.parametrize("encoding", [None, "png", "webp"])
def test_a_buffer_that_is_filled_again_and_again(either: str, encoding: str | None) -> None:
    """A camera's idiom: each array is encoded before the next one is asked for."""
    buffer = number_picture(0).copy()

    def camera() -> Iterator[npt.NDArray[np.uint8]]:
        for number in range(40):
            buffer[:] = number_picture(number)
            yield buffer

    with PredictionSession(either, camera(), encoding=encoding) as session:
        assert [box_number(one.boxes[0]) for one in session] == list(range(40))


def test_a_source_that_waits_for_its_own_results(ours: str) -> None:
    """What an iterator has given is not held back until it gives more: two uploads come while it waits."""
    got: list[int] = []
    came = threading.Event()

    def source() -> Iterator[npt.NDArray[np.uint8]]:
        yield from (number_picture(number) for number in range(9))
        assert came.wait(20), "the first nine did not come"
        yield number_picture(9)

    with PredictionSession(ours, source(), encoding="webp") as session:
        for prediction in session:
            got.append(box_number(prediction.boxes[0]))
            if len(got) == 9:
                came.set()
    assert got == list(range(10))


def test_an_array_that_cannot_be_sent_among_others(either: str) -> None:
    """A source that fails after some arrays: those come first, then its error."""

    def failing() -> Iterator[npt.NDArray[np.uint8]]:
        yield from (number_picture(number) for number in range(9))
        raise RuntimeError("the camera is gone")

    got = []
    with PredictionSession(either, failing()) as session, pytest.raises(RuntimeError, match="camera is gone"):
        for prediction in session:
            got.append(box_number(prediction.boxes[0]))
    assert got == list(range(9))
