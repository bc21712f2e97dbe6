"""What is too much for the gRPC door, with plain values: replies, batches, sessions, settings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from predsession.server.config import Limits
from predsession.server.edge.changes import ChangeError, changed
from predsession.server.edge.inferring import Inferring, patience
from predsession.server.edge.models import EdgeModel, Models
from predsession.server.edge.sessions import QuotaError, SessionError, Sessions
from predsession.server.models.card import ModelCard
from predsession.server.runner import Runner
from predsession.server.shots import Shot
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.requests import has_more_items


@dataclass
class Sizes:
    """Models, and the workers of each: a picture of one row is answered with as many bytes as it is wide."""

    most: int
    inferring: Inferring = field(init=False)

    def __post_init__(self) -> None:
        self.inferring = Inferring(cast("Models", self), Sessions(1), Limits(), most_bytes=self.most)

    def get(self, name: str) -> EdgeModel:
        """Return a model."""
        return EdgeModel(name, "", cast("Runner", SimpleNamespace(shoot=self.shoot)))

    def shoot(self, shot: Shot) -> None:
        """Answer at once."""
        output = pb.Tensor(shape=[shot.size.width], data=bytes(shot.size.width))
        shot.settle(pb.InferResponse(outputs=[output]).SerializeToString(), None, 0.0)


def request(width: int) -> pb.InferRequest:
    """Ask for as many bytes."""
    return pb.InferRequest(inputs=[pb.Tensor(shape=[1, width, 3], data=bytes(width * 3))])


def test_an_answer_that_is_too_large() -> None:
    """It is refused, and one that just fits is not."""

    async def ask(width: int) -> pb.InferResponse:
        return pb.InferResponse.FromString(await Sizes(10_000).inferring.infer(request(width)))

    assert asyncio.run(ask(9_900)).status.success
    refused = asyncio.run(ask(10_000))
    assert not refused.status.success
    assert refused.status.message.startswith("Answer too large: 100")
    assert refused.status.message.endswith("the limit is 10000")


@pytest.mark.parametrize(("widths", "good"), [
    ((4_000, 4_000, 4_000, 100), (True, True, False, True)),
    ((20_000, 4_000), (False, True)),
    ((9_000,), (True,)),
    ((1,) * 60, (True,) * 60),
    ((9_000,) * 60, (False,) * 60),
])  # fmt: skip
def test_a_batch_that_does_not_fit(widths: tuple[int, ...], good: tuple[bool, ...]) -> None:
    """What fits, in order, is answered; what does not is refused by itself; the whole is never too large."""

    async def ask() -> bytes:
        batch = pb.InferBatchRequest(requests=[request(width) for width in widths])
        return await Sizes(10_000).inferring.infer_batch(batch)

    whole = asyncio.run(ask())
    assert len(whole) <= 10_000
    reply = pb.InferBatchResponse.FromString(whole)
    assert tuple(each.status.success for each in reply.responses) == good
    assert reply.status.success == all(good)


@pytest.mark.parametrize(("timeout_ms", "left", "seconds"), [
    (10_000, None, 10.0), (0, None, 10.0),
    (10_000, 10.0, 9.75), (1_000, 1.0, 0.95), (100, 0.1, 0.08), (20, 0.02, 0.01), (20, 0.0, 0.0),
    (10_000, 10.25, 10.0), (10_000, 60.0, 10.0), (10_000, 4.0, 3.8),
])  # fmt: skip
def test_how_long_a_batch_may_take(timeout_ms: int, left: float | None, seconds: float) -> None:
    """As long as it says, and where its caller gives up first, a margin less than that."""
    assert patience(timeout_ms, left) == pytest.approx(seconds)


@pytest.mark.parametrize("create", [
    lambda sessions: sessions.create("s" * 257, ""),
    lambda sessions: sessions.create("", "a" * 257),
    lambda sessions: sessions.create("", "", allowed=["m" * 257]),
    lambda sessions: sessions.create("", "", allowed=map(str, range(1001))),
])  # fmt: skip
def test_sessions_that_hold_too_much(create: Callable[[Sessions], object]) -> None:
    """A session's names, and their number, are bounded; what is refused is not kept."""
    sessions = Sessions(4)
    with pytest.raises(SessionError, match="at most"):
        create(sessions)
    assert len(sessions) == 0


def test_what_a_refusal_names() -> None:
    """Ten models are named, and of a session that is not there so much as tells it."""
    sessions = Sessions(4)
    sessions.create("s" * 256, "", allowed=[f"m{number}" for number in range(1000)])
    with pytest.raises(QuotaError, match=r"may use m0, .*, \.\.\. and 990 more$"):
        sessions.enter("s" * 256, "x").__enter__()
    with pytest.raises(QuotaError) as raised:
        sessions.enter("x" * 1_000_000, "x").__enter__()
    assert len(str(raised.value)) < 300


CARD = ModelCard(("cat",), "rectangle", {"confidence_threshold": 0.3, "iou": 0.5, "max_objects": 9}, 4, "x")
PRESENT = {"confidence_threshold": 0.4, "iou": 0.5, "max_objects": 9, "classes": None}


def test_settings_by_the_runtimes_names() -> None:
    """Whatever a setting is called, it becomes the model's own; the others stay."""
    for name in ("detection_threshold", "score_threshold", "conf", "confidence_threshold"):
        assert changed(PRESENT, json.dumps({name: 0.7}), card=CARD) == {
            **PRESENT, "confidence_threshold": 0.7,
        }  # fmt: skip
    text = json.dumps({"nms_iou_threshold": 1, "max_boxes": 0})
    assert changed(PRESENT, text, card=CARD) == {**PRESENT, "iou": 1, "max_objects": 0}


@pytest.mark.parametrize(("text", "words"), [
    ("[]", "no JSON object"), ("[" * 100_000, "no JSON object"), ("", "no JSON object"),
    ('{"max_boxes": -1}', "whole number"), ('{"max_boxes": 1.5}', "whole number"),
    ('{"iou_threshold": 1.01}', "0 to 1"), ('{"conf": -0.1}', "0 to 1"), ('{"conf": NaN}', "a number"),
    ('{"iou": 0.5, "iou_threshold": 0.5}', "iou and iou_threshold are one setting; give it once"),
    ('{"conf": 0.5, "confidence_threshold": 0.5}', "conf and confidence_threshold are one setting"),
])  # fmt: skip
def test_changes_that_are_none(text: str, words: str) -> None:
    """Nonsense is refused by name."""
    with pytest.raises(ChangeError, match=words):
        changed(PRESENT, text, card=CARD)


@pytest.mark.parametrize("item", ["", "x" * 200])
@pytest.mark.parametrize(
    "before", [b"", b"\x10\x96\x01", b"\x19" + bytes(8), b"\x1d" + bytes(4), b"\xfa\x01\x02aa"]
)
def test_items_are_counted_unread(item: str, before: bytes) -> None:
    """The items of a batch are counted, whatever is between or behind them."""
    one = pb.InferBatchRequest(requests=[pb.InferRequest(model_id=item)]).SerializeToString()
    batch = (before + one) * 3
    assert [has_more_items(batch, most) for most in (2, 3)] == [True, False]
    assert has_more_items(batch + b"\x0f\xff", 2)
    assert not has_more_items(batch[:-1], 3)
    assert not has_more_items(b"\xff" * 50, 3)
    assert not has_more_items(b"", 0)
