"""Reading one job: counted, in order, nothing lost without its being noticed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fakes import UNKNOWN_JOB, Answer, ScriptedTransport, job_reply, reply

from predsession import errors
from predsession.jobs.job import JobReader
from predsession.jobs.shared import PipelineOptions, Shared
from predsession.testing import FakeClock
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply
from predsession.wire.submits import SubmitOptions

STOCK = reply({"app_name": "stock"})
ACK = reply({"predsession": {"version": 1, "features": ["ack"]}})
LOST = errors.RequestTimeoutError("no answer")


def items(*numbers: int) -> list[dict[str, object]]:
    """Return results that tell which they are."""
    return [{"number": number, "annotation": {}} for number in numbers]


def reader(
    pops: Sequence[Answer], expected: int, info: Reply = STOCK, **others: Sequence[Answer]
) -> JobReader:
    """Return a reader of a scripted job."""
    script = ScriptedTransport(
        **{"get_session_info": [info], "get_model_meta": [reply({"classes": []})], **others},
        pop_inference_results=pops,
    )
    shared = Shared(script, PipelineOptions(SubmitOptions("session", {}), clock=FakeClock()))
    shared.facts.ask()
    return JobReader(shared, "u1", expected=expected)


def numbers(job: JobReader) -> list[object]:
    """Return the numbers of all results."""
    return [item["number"] for group in job.results() for item in group]


def test_results_come_in_order() -> None:
    """Until the answer that says that nothing can follow."""
    pops = [job_reply(items(1)), job_reply(), job_reply(items(2, 3), stage="Finished", finished=True)]
    assert numbers(reader(pops, 3)) == [1, 2, 3]


def test_a_terminal_stage_is_not_yet_the_end() -> None:
    """A stock server says `finished` a moment later; what comes till then counts."""
    pops = [job_reply(items(1), stage="Finished"), job_reply(items(2), stage="Finished", finished=True)]
    assert numbers(reader(pops, 2)) == [1, 2]


def test_after_a_lost_answer_the_rest_is_held_back_until_it_is_counted() -> None:
    """Nothing was lost after all: the count is right, and everything is given out."""
    pops = [
        job_reply(items(1)),
        LOST,
        job_reply(items(2)),
        job_reply(items(3), stage="Finished", finished=True),
    ]
    assert numbers(reader(pops, 3)) == [1, 2, 3]


def test_after_a_lost_answer_with_results_nothing_doubtful_is_given_out() -> None:
    """Result 2 went with the answer: result 3 might be anybody's, and is not given out."""
    pops = [job_reply(items(1)), LOST, job_reply(items(3), stage="Finished", finished=True)]
    assert numbers(reader(pops, 3)) == [1]


def test_what_was_computed_before_a_failure_is_given_out_after_a_lost_answer() -> None:
    """The server's own count tells whether it is complete."""
    fault = {"type": "ValueError", "message": "x"}
    end = job_reply(items(2), stage="Error", finished=True, current=2, exception=fault)
    assert numbers(reader([job_reply(items(1)), LOST, end], 5)) == [1, 2]
    end = job_reply(items(3), stage="Error", finished=True, current=3, exception=fault)
    assert numbers(reader([job_reply(items(1)), LOST, end], 5)) == [1]


def test_many_lost_answers_in_a_row_are_an_error() -> None:
    """A server that answers nothing any more is not polled for ever."""
    with pytest.raises(errors.RequestTimeoutError):
        numbers(reader([LOST], 3))


def test_an_unknown_job_is_expired() -> None:
    """At once, without retries."""
    job = reader([job_reply(items(1)), UNKNOWN_JOB], 3)
    assert numbers(job) == [1]
    assert job.expired


def test_a_bare_500_means_expired_if_the_server_is_well() -> None:
    """In development mode a stock server says nothing but `Internal Server Error`."""
    bare = Reply(500, {"content-type": "text/plain"}, b"Internal Server Error", "http://server/x")
    job = reader([bare], 3, get_inference_status=[bare])
    assert numbers(job) == []
    assert job.expired


def test_a_failure_while_preparing_ends_at_once() -> None:
    """Stage Error with an exception is the end, even before `finished`."""
    fault = {"type": "ConnectionError", "message": "no weights"}
    assert numbers(reader([job_reply(stage="Error", exception=fault)], 3)) == []


@pytest.mark.parametrize("count", [3, 1])
def test_a_count_that_does_not_fit_gives_nothing_out(count: int) -> None:
    """One result too many, or too few without a lost answer: any of them may be another image's."""
    job = reader([job_reply(items(*range(1, count + 1)), stage="Finished", finished=True)], 2)
    assert numbers(job) == []
    assert f"{count} results for 2 items" in str(job.miscounted)


@pytest.mark.parametrize("rest", [(2, 3), ()])
def test_a_count_that_does_not_fit_is_noted_though_some_were_given_out(rest: tuple[int, ...]) -> None:
    """Whoever took the first results is to be told not to trust them."""
    job = reader([job_reply(items(1)), job_reply(items(*rest), stage="Finished", finished=True)], 2)
    assert numbers(job) == [1]
    assert job.miscounted is not None
    assert job.received == 1


def test_a_stock_answer_without_a_stage_counts_as_lost() -> None:
    """It may have held results: what follows is held back, and does not fit."""
    pops = [job_reply(items(1)), reply({"oops": 1}), job_reply(items(3), stage="Finished", finished=True)]
    assert numbers(reader(pops, 3)) == [1]


def test_a_job_that_stands_still_is_given_up() -> None:
    """An unknown final stage is not polled for ever."""
    with pytest.raises(errors.JobTimeoutError, match="aborted"):
        numbers(reader([job_reply(stage="aborted")], 3))


def test_with_ack_a_lost_answer_is_asked_for_again() -> None:
    """The server forgets only what was acked: nothing is lost, nothing doubled."""
    lost_once = iter([False, True, False, False, False, False])

    def pop(call: Call) -> Reply:
        if next(lost_once):
            raise LOST
        ack = int(str(call.state["ack"]))
        following = items(*range(ack + 1, min(ack + 2, 3) + 1))
        return job_reply(following, stage="Finished", finished=True)

    assert numbers(reader([pop], 3, ACK)) == [1, 2, 3]


def test_with_ack_a_gap_in_the_numbers_is_an_error() -> None:
    """A result that skips a number would belong to another image."""
    with pytest.raises(errors.ProtocolError, match="2 follows"):
        numbers(reader([job_reply(items(1)), job_reply(items(3))], 3, ACK))


@pytest.mark.parametrize(
    "wrong",
    [job_reply(items(2)), job_reply(items(1, 1)), job_reply(items(1, 2, 3, 4)), job_reply([{}]), reply({})],
    ids=["gap", "double", "too many", "no number", "no stage"],
)
def test_with_ack_an_answer_that_cannot_be_is_asked_for_again(wrong: Reply) -> None:
    """The same question brings the right answer the next time."""
    right = job_reply(items(1, 2, 3), stage="Finished", finished=True)
    assert numbers(reader([wrong, right], 3, ACK)) == [1, 2, 3]


def test_with_ack_the_order_is_that_of_the_numbers() -> None:
    """Whichever way the answer has them."""
    shuffled = job_reply(items(3, 1, 2), stage="Finished", finished=True)
    assert numbers(reader([shuffled], 3, ACK)) == [1, 2, 3]


def test_cancelling_ends_the_reading() -> None:
    """What has come is kept, nothing more is asked for."""
    job = reader([job_reply(items(1)), job_reply(items(2))], 9)
    seen = []
    for group in job.results():
        seen.extend(group)
        job._shared.cancel.set()
    assert len(seen) == 1


def test_what_is_run_again_is_popped_once() -> None:
    """The end is waited for with calls that take nothing: one answer that may be lost, not many."""
    running, ended = job_reply(), job_reply(stage="Finished", finished=True, current=2, total=2)
    script = ScriptedTransport(
        get_session_info=[STOCK],
        get_model_meta=[reply({"classes": []})],
        get_inference_progress=[running, running, ended],
        pop_inference_results=[job_reply(items(1, 2), stage="Finished", finished=True)],
    )
    shared = Shared(script, PipelineOptions(SubmitOptions("session", {}), clock=FakeClock()))
    shared.facts.ask()
    assert numbers(JobReader(shared, "u1", expected=2, again=True)) == [1, 2]
    assert script.endpoints().count("pop_inference_results") == 1
