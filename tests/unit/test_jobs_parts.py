"""The small parts of the pipeline: outlet, flight, pace, ledger, counters."""

from __future__ import annotations

import queue
import threading

import pytest
from fakes import ScriptedTransport, reply
from hypothesis import given
from hypothesis import strategies as st
from server_kit import until

from predsession import errors
from predsession.clock import SystemClock
from predsession.http.caller import Caller
from predsession.http.retry import RetryPolicy
from predsession.jobs.batch import Batch
from predsession.jobs.cleanup import Ledger
from predsession.jobs.counters import Counters
from predsession.jobs.flight import Flight
from predsession.jobs.outlet import ROOM, Outlet
from predsession.jobs.pace import FIRST_POLL, MOST_IMAGES, SLOWEST_POLL, STOCK_WINDOW, PollPace, UploadSize
from predsession.testing import FakeClock
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply

DONE = reply({"success": True})


def item_error(index: int) -> errors.ItemError:
    """Return an outcome that tells which it is."""
    return errors.ItemError(f"item {index}", index=index)


def nothing() -> None:
    """Refresh no bar."""


def test_the_outlet_hands_out_everything_before_its_error() -> None:
    """Outcomes in order, then the error once, then the end."""
    outlet = Outlet(SystemClock())
    for index in range(3):
        assert outlet.put(item_error(index), timeout=0)
    outlet.end(errors.JobError("broken"))
    outlet.end()
    taken = [outlet.get(0, nothing) for _ in range(3)]
    assert [one.index for one in taken if isinstance(one, errors.ItemError)] == [0, 1, 2]
    with pytest.raises(errors.JobError, match="broken"):
        outlet.get(0, nothing)
    assert outlet.get(0, nothing) is None


def test_the_outlet_has_a_bound() -> None:
    """A slow caller holds the pipeline back; taking one makes room for one."""
    outlet = Outlet(SystemClock())
    assert all(outlet.put(item_error(index), timeout=0) for index in range(ROOM))
    assert not outlet.put(item_error(ROOM), timeout=0)
    outlet.get(0, nothing)
    assert outlet.put(item_error(ROOM), timeout=0)


def test_an_empty_outlet_says_so() -> None:
    """The wait ends in time, and the bar is refreshed meanwhile."""
    refreshed = []
    with pytest.raises(queue.Empty):
        Outlet(SystemClock()).get(0.05, lambda: refreshed.append(1))
    assert refreshed


def test_the_flight_never_holds_more_than_a_stock_server_keeps() -> None:
    """At most 64 images, and two uploads, however large they would be."""
    flight: Flight[object] = Flight()
    assert flight.take_room(32)
    assert flight.take_room(32)
    third = threading.Thread(target=flight.take_room, args=(1,))
    third.start()
    until(lambda: flight._changed._waiters or not third.is_alive(), "it to wait")
    assert third.is_alive()
    flight.give_back(32)
    third.join(5)
    assert not third.is_alive()


def test_one_upload_alone_is_always_let_through() -> None:
    """A pipeline that could not send anything would never end."""
    assert Flight().take_room(STOCK_WINDOW * 10)


def test_the_flights_error_comes_after_what_is_in_flight() -> None:
    """Everything that was sent is received first."""
    flight: Flight[list[Batch]] = Flight()
    upload = [Batch([])]
    flight.put(upload)
    flight.end(errors.ConnectError("gone"))
    assert flight.get() is upload
    with pytest.raises(errors.ConnectError):
        flight.get()


@given(st.lists(st.booleans(), max_size=300))
def test_polls_are_never_a_storm_and_never_asleep(answers: list[bool]) -> None:
    """Every delay lies between 4 ms and a second."""
    pace = PollPace()
    for got_some in answers:
        delay = pace.after_results() if got_some else pace.after_nothing()
        assert FIRST_POLL <= delay <= SLOWEST_POLL


def test_polls_fall_into_step_with_slow_results() -> None:
    """Results every 2 s are asked for a handful of times each, not hundreds of times."""
    pace, polls = PollPace(), 0
    for _ in range(20):
        waited = pace.after_results()
        while waited < 2.0:
            waited += pace.after_nothing()
            polls += 1
    assert polls < 20 * 25


def test_uploads_are_small_first_and_sized_by_time_then() -> None:
    """One image, then eight, then about two seconds of the server's work, within the window."""
    size = UploadSize()
    assert size.next() == 1
    assert size.next() == 8
    size.measured(8, 4.0)
    assert size.next() == 4
    for _ in range(8):
        size.measured(32, 0.1)
    assert size.next() == MOST_IMAGES
    assert 2 * MOST_IMAGES <= STOCK_WINDOW


def test_an_upload_is_a_whole_number_of_batches() -> None:
    """A model that takes 5 at once is not given 32."""
    size = UploadSize(batch_size=5)
    size.next()
    size.measured(100, 1.0)
    assert size.next() == 30


@given(st.floats(0, 1e6), st.integers(1, 1000))
def test_an_upload_has_at_least_one_image(seconds: float, images: int) -> None:
    """However slow the server is."""
    size = UploadSize()
    size.next()
    size.measured(images, seconds)
    assert 1 <= size.next() <= MOST_IMAGES


def ledger(**answers: list[Reply]) -> tuple[Ledger, ScriptedTransport, Counters]:
    """Return a ledger on a scripted transport."""
    script = ScriptedTransport(**{"stop_inference": [DONE], "clear_inference_request": [DONE], **answers})
    counters = Counters(FakeClock())
    return Ledger(Caller(script, RetryPolicy(tries=2), FakeClock()), counters), script, counters


def test_each_live_job_gets_one_stop_and_one_clear() -> None:
    """However often, and from however many threads, the ledger is closed."""
    book, script, _ = ledger()
    book.opened("a")
    book.opened("b")
    threads = [threading.Thread(target=book.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent = [(call.endpoint, call.state["inference_request_uuid"]) for call in script.calls]
    assert sorted(sent) == [
        ("clear_inference_request", "a"),
        ("clear_inference_request", "b"),
        ("stop_inference", "a"),
        ("stop_inference", "b"),
    ]


def test_a_finished_job_gets_only_its_clear() -> None:
    """And an expired one nothing."""
    book, script, _ = ledger()
    for uuid in ("done", "gone"):
        book.opened(uuid)
    book.finished("done")
    book.finished("done")
    book.lost("gone")
    book.close()
    assert script.endpoints() == ["clear_inference_request"]


def test_what_goes_wrong_while_cleaning_up_is_kept_not_raised() -> None:
    """The clear is still sent after a stop that failed."""
    book, script, counters = ledger(stop_inference=[reply({"detail": "boom"}, 400)])
    book.opened("a")
    book.close()
    assert script.endpoints() == ["stop_inference", "clear_inference_request"]
    assert counters.get("cleanup_failures") == 1
    assert [type(failure) for failure in book.failures] == [errors.InvalidRequestError]


def test_a_clear_that_fails_is_sent_again_at_the_close() -> None:
    """Nothing is counted as left if that works; until then the job is live."""
    book, script, counters = ledger(clear_inference_request=[reply({"detail": "boom"}, 400), DONE])
    book.opened("a")
    book.finished("a")
    assert book.live == ("a",)
    book.close()
    assert script.endpoints() == ["clear_inference_request"] * 2
    assert (book.live, counters.get("cleanup_failures")) == ((), 0)


def test_a_close_that_is_interrupted_can_be_gone_on_with() -> None:
    """Ctrl-C in the middle: the job whose turn it was, and those after it, are ended by the next close."""
    interrupts = iter([True, False, False, False])

    def stop(call: Call) -> Reply:
        if next(interrupts):
            raise KeyboardInterrupt
        return DONE

    book, script, counters = ledger(stop_inference=[stop])
    book.opened("a")
    book.opened("b")
    with pytest.raises(KeyboardInterrupt):
        book.close()
    book.close()
    cleared = [call.state["inference_request_uuid"] for call in script.calls if "clear" in call.endpoint]
    assert sorted(map(str, cleared)) == ["a", "b"]
    assert counters.get("cleanup_failures") == 0


def test_the_report_has_the_counts() -> None:
    """Under the names that were counted."""
    counters = Counters(FakeClock())
    counters.add("jobs", 2)
    with counters.timed("seconds_wait"):
        pass
    report = counters.report(7, Caller(ScriptedTransport()).retries)
    assert (report.items, report.jobs, report.seconds_wait, report.retries) == (7, 2, 0.0, {})
