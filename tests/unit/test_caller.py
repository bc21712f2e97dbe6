"""A call with its retries, on a clock that does not wait."""

from __future__ import annotations

import threading

import pytest
from fakes import UNKNOWN_JOB, ScriptedTransport, reply

from predsession import errors
from predsession.http.caller import Caller
from predsession.http.retry import RetryPolicy
from predsession.testing import FakeClock
from predsession.wire import calls
from predsession.wire.httpreply import Reply

OK = reply({"fine": True})
LOST = errors.RequestTimeoutError("no answer")
UNREACHABLE = errors.ConnectError("nobody there")


def caller(transport: ScriptedTransport, **policy: float) -> Caller:
    """Return a caller on a fake clock."""
    return Caller(transport, RetryPolicy(**policy), FakeClock())


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_burst_of_faults_is_survived(status: int) -> None:
    """Three failures in a row, then the answer; each try is counted."""
    script = ScriptedTransport(get_inference_status=[reply({}, status)] * 3 + [OK])
    asker = caller(script)
    assert asker.call(calls.status("u")) is OK
    assert sum(asker.retries.values()) == 3


@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"a": {"b": 1}', b"", b"\xff"])
def test_an_answer_that_is_no_json_is_asked_for_again(body: bytes) -> None:
    """Status 200, and a page, or only a part of the answer."""
    wrong = Reply(200, {}, body, "http://server/x")
    script = ScriptedTransport(get_session_info=[OK], get_inference_status=[wrong] * 4 + [OK])
    asker = caller(script)
    asker.call(calls.session_info())
    assert asker.call(calls.status("u")) is OK
    assert asker.retries == {"garbled": 4}


def test_a_server_that_has_never_answered_json_is_soon_given_up() -> None:
    """It is a login page, or the wrong address."""
    script = ScriptedTransport(get_session_info=[Reply(200, {}, b"<html>log in</html>", "http://server/x")])
    with pytest.raises(errors.ProtocolError, match="log in"):
        caller(script).call(calls.session_info())
    assert len(script.calls) == 3


def test_it_gives_up_after_the_policys_tries() -> None:
    """The last answer is raised as its error."""
    script = ScriptedTransport(get_inference_status=[reply({"detail": "boom"}, 502)])
    with pytest.raises(errors.ServerFaultError, match="boom") as caught:
        caller(script, tries=4).call(calls.status("u"))
    assert caught.value.status == 502
    assert len(script.calls) == 4


def test_an_unknown_job_is_no_fault() -> None:
    """It is answered at once: asking again cannot help."""
    script = ScriptedTransport(get_inference_status=[UNKNOWN_JOB])
    assert caller(script).call(calls.status("u")) is UNKNOWN_JOB
    assert len(script.calls) == 1


def test_a_pop_of_a_stock_server_is_not_repeated_after_a_lost_answer() -> None:
    """The results may have gone with it; whoever counts must know."""
    script = ScriptedTransport(pop_inference_results=[LOST, OK])
    with pytest.raises(errors.RequestTimeoutError):
        caller(script).call(calls.pop("u"))
    assert len(script.calls) == 1


def test_an_acked_pop_is_repeated() -> None:
    """The same question has the same answer."""
    script = ScriptedTransport(pop_inference_results=[LOST, OK])
    assert caller(script).call(calls.pop_acked("u", ack=3, wait=None, limit=8)) is OK


def test_retry_after_is_waited_for() -> None:
    """As many seconds as the server says."""
    script = ScriptedTransport(get_inference_status=[reply({}, 503, retry_after="7.0"), OK])
    asker = caller(script)
    asker.call(calls.status("u"))
    assert asker.clock.now() == 7.0


def test_an_address_that_never_answered_is_given_up_soon() -> None:
    """About 5 s, not a minute."""
    asker = caller(ScriptedTransport(get_inference_status=[UNREACHABLE]))
    with pytest.raises(errors.ConnectError):
        asker.call(calls.status("u"))
    assert 4.0 < asker.clock.now() < 8.0


def test_a_known_server_that_restarts_is_waited_for() -> None:
    """About a minute of refused connections in the middle of a run."""
    asker = caller(ScriptedTransport(get_session_info=[OK], get_inference_status=[UNREACHABLE]))
    asker.call(calls.session_info())
    with pytest.raises(errors.ConnectError):
        asker.call(calls.status("u"))
    assert 58.0 < asker.clock.now() < 66.0


def test_a_bad_certificate_is_not_tried_again() -> None:
    """Trying again is safe, and useless."""
    script = ScriptedTransport(get_session_info=[errors.ConnectError("no trust", permanent=True)])
    with pytest.raises(errors.ConnectError):
        caller(script).call(calls.session_info())
    assert len(script.calls) == 1


def test_cancelling_ends_the_tries() -> None:
    """A session that is being closed does not wait."""
    cancel = threading.Event()
    cancel.set()
    script = ScriptedTransport(get_session_info=[UNREACHABLE])
    with pytest.raises(errors.ConnectError):
        Caller(script, RetryPolicy(), FakeClock(), cancel).call(calls.session_info())
    assert len(script.calls) == 1
