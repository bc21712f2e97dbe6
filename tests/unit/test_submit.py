"""Items to jobs: names, halves, blame, and submits that go unanswered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import makers
import pytest
from fakes import Answer, ScriptedTransport, reply

from predsession import errors
from predsession.inputs.sources import open_source
from predsession.inputs.uploads import PartChangedError
from predsession.jobs.batch import Batch, Slot
from predsession.jobs.shared import PipelineOptions, Shared
from predsession.jobs.start import UploadCancelledError
from predsession.jobs.submit import Submitter
from predsession.testing import FakeClock
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply
from predsession.wire.submits import SubmitOptions

STOCK = reply({"app_name": "stock"})
OURS = reply({"predsession": {"version": 1, "features": ["ack", "idempotency", "item_errors"]}})
META = reply({"classes": [], "tags": []})
FAULT = reply({"detail": "boom"}, 500)


class Bench:
    """A submitter on a scripted transport, and what can be read of it."""

    def __init__(self, submits: Sequence[Answer], info: Reply = STOCK) -> None:
        self.transport = ScriptedTransport(
            inference_batch_async=submits,
            get_session_info=[info],
            get_model_meta=[META],
            stop_inference=[reply({"success": True})],
            clear_inference_request=[reply({"success": True})],
        )
        options = PipelineOptions(SubmitOptions("session", {"conf": 0.5}), clock=FakeClock())
        shared = Shared(self.transport, options)
        self.counters, self.ledger = shared.counters, shared.ledger
        shared.facts.ask()
        self.submitter = Submitter(shared)

    def submit(self, *sources: object) -> tuple[list[Slot], list[Batch]]:
        """Submit the sources as one upload."""
        slots = [Slot(item) for item in open_source(list(sources))]
        return slots, self.submitter.submit(slots)

    def submits(self) -> list[Call]:
        """Return the submits so far."""
        return [call for call in self.transport.calls if call.endpoint == "inference_batch_async"]


def accepted(number: int = 1) -> Reply:
    """Return the answer to a submit that starts job number so and so."""
    return reply({"message": "Scheduled", "inference_request_uuid": f"job{number}"})


def refusing(bad: bytes) -> Answer:
    """Answer as a server that refuses any upload that holds these bytes."""
    started = iter(range(1, 100))

    def answer(call: Call) -> Reply:
        bodies = bench_of[0].transport.parts["inference_batch_async"]
        sent = bodies[-1] if bodies else []
        return FAULT if bad in sent else accepted(next(started))

    return answer


bench_of: list[Bench] = []


@pytest.fixture(autouse=True)
def _forget_bench() -> None:
    """Each test has a bench of its own."""
    bench_of.clear()


def test_upload_names_are_never_used_twice() -> None:
    """A stock server keeps images by name, so equal names would mix up results."""
    bench = Bench([accepted(1), accepted(2)])
    picture = makers.jpeg()
    first, _ = bench.submit(picture, picture)
    names = {slot.upload_name for slot in first}
    second, _ = bench.submit(picture, picture)
    names |= {slot.upload_name for slot in second}
    assert len(names) == 4
    assert all(name.endswith(".jpg") and "/" not in name and name.isascii() for name in names)


def test_a_bad_image_is_found_by_halving() -> None:
    """A stock server refuses an upload of five for the one, and does not say which: four are predicted."""
    # A PNG with a broken checksum inside is sound from outside, so it is sent; nothing can decode it.
    bad = makers.png_with(
        (b"IHDR", b"\0\0\0\x08\0\0\0\x08\x08\x02\0\0\0"), (b"IDAT", b"rubbish"), (b"IEND", b"")
    )
    bench = Bench([refusing(bad)])
    bench_of.append(bench)
    slots, batches = bench.submit(makers.jpeg(), makers.png(), bad, makers.gray_jpeg(), makers.cmyk_jpeg())
    assert [slot.item.index for slot in slots if slot.outcome is not None] == [2]
    assert isinstance(slots[2].outcome, errors.ItemError)
    assert [slot.item.index for batch in batches for slot in batch.slots] == [0, 1, 2, 3, 4]
    assert [slot.item.index for batch in batches for slot in batch.sent] == [0, 1, 3, 4]


def test_a_sound_image_that_is_refused_is_sent_as_png() -> None:
    """The server cannot read this kind of file, though it is one: it gets its pixels instead."""
    odd = makers.jpeg()
    bench = Bench([refusing(odd)])
    bench_of.append(bench)
    slots, batches = bench.submit(odd)
    assert slots[0].outcome is None
    assert slots[0].upload_name.endswith(".png")
    assert [batch.uuid for batch in batches] == ["job1"]


def test_a_server_that_refuses_everything_is_at_fault() -> None:
    """Not the images: the server's error is raised."""
    bench = Bench([FAULT])
    with pytest.raises(errors.ServerFaultError, match="boom"):
        bench.submit(makers.jpeg(), makers.png())


def test_a_server_with_item_errors_is_taken_at_its_word() -> None:
    """Its 500 in JSON is about the request: nothing is halved, nor sent again."""
    bench = Bench([FAULT], OURS)
    with pytest.raises(errors.ServerFaultError):
        bench.submit(makers.jpeg(), makers.png())
    assert len(bench.submits()) == 1


def test_413_is_answered_with_halves() -> None:
    """Four images are too much, two are not; one that is too large alone is an item error with its size."""
    too_large = reply({"detail": "too large"}, 413)
    bench = Bench([too_large, accepted(1), accepted(2)])
    _, batches = bench.submit(*[makers.jpeg()] * 4)
    assert [len(batch.sent) for batch in batches] == [2, 2]

    picture = makers.jpeg()
    slots, batches = Bench([too_large]).submit(picture)
    assert isinstance(slots[0].outcome, errors.ItemError)
    assert str(len(picture)) in slots[0].outcome.reason
    assert batches[0].uuid is None


def test_an_unanswered_submit_is_counted_on_a_stock_server() -> None:
    """The job it may have started cannot be named, so the report says so; the names are new."""
    bench = Bench([errors.RequestTimeoutError("late"), accepted()])
    slots, batches = bench.submit(makers.jpeg())
    assert batches[0].uuid == "job1"
    assert bench.counters.get("unanswered_submits") == 1
    keys = {call.headers["Idempotency-Key"] for call in bench.submits()}
    assert len(keys) == 1
    assert slots[0].upload_name.startswith("session-2-")


def test_an_unanswered_submit_is_repeated_where_the_server_knows_keys() -> None:
    """The same key finds the same job: nothing is orphaned."""
    bench = Bench([errors.RequestTimeoutError("late"), accepted()], OURS)
    bench.submit(makers.jpeg())
    assert bench.counters.get("unanswered_submits") == 0


def test_a_file_that_vanishes_while_it_is_sent_is_an_item_error(tmp_path: Path) -> None:
    """The others are sent without it."""
    paths = [makers.write_jpeg(tmp_path / f"{n}.jpg") for n in range(3)]
    slots = [Slot(item) for item in open_source([str(path) for path in paths])]

    def vanish(call: Call) -> Reply:
        raise PartChangedError(slots[1].upload_name)

    # The real transport reads through PartReader, which raises as this script does (test_transport.py).
    bench = Bench([vanish, accepted()])
    batches = bench.submitter.submit(slots)
    assert [slot.item.index for slot in batches[0].sent] == [0, 2]
    assert isinstance(slots[1].outcome, errors.ItemError)


def test_a_job_that_starts_after_the_session_was_closed_is_ended() -> None:
    """Its stop and its clear are sent on the spot."""
    bench = Bench([accepted()])
    bench.ledger.close()
    with pytest.raises(UploadCancelledError):
        bench.submit(makers.jpeg())
    assert bench.transport.endpoints()[-2:] == ["stop_inference", "clear_inference_request"]
