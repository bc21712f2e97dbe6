"""Answers as values: what is survived, what is an error, and which."""

from __future__ import annotations

import pickle

import pytest
from fakes import UNKNOWN_JOB, job_reply, reply

from predsession import errors
from predsession.wire.httpreply import Reply, error_of, is_unknown_job, parse_json
from predsession.wire.replies import parse_info, parse_item_fault, parse_job, parse_submitted
from predsession.wire.stages import Stage


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, errors.ResponseError),
        (400, errors.InvalidRequestError),
        (401, errors.AuthError),
        (403, errors.AuthError),
        (404, errors.NotFoundError),
        (405, errors.NotFoundError),
        (413, errors.UploadTooLargeError),
        (422, errors.InvalidRequestError),
        (429, errors.RateLimitError),
        (500, errors.ServerFaultError),
        (504, errors.ServerFaultError),
    ],
)
def test_a_status_is_its_error(status: int, kind: type[errors.ResponseError]) -> None:
    """Each status has one error type, which carries it, and survives pickle."""
    error = error_of(reply({"detail": "no"}, status, retry_after="2.0"))
    assert type(error) is kind
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, again.retry_after, str(again)) == (status, 2.0, str(error))


def test_a_proxys_page_is_one_line() -> None:
    """A 504 page comes as its title, not as a page of markup."""
    page = b"<html><head><title>504 Gateway Time-out</title></head>" + b"<p>filler</p>" * 1000
    error = error_of(Reply(504, {}, page, "http://server/x"))
    assert "504 Gateway Time-out" in str(error)
    assert "<p>" not in str(error)
    assert "\n" not in str(error)


def test_a_redirect_names_its_target() -> None:
    """A redirected POST is an error that says where it should have gone."""
    error = error_of(Reply(308, {"location": "https://there/x"}, b"", "http://here/x"))
    assert "https://there/x" in str(error)


def test_a_login_page_with_status_200_is_a_protocol_error() -> None:
    """It tells the URL, the content type and the first characters."""
    page = Reply(200, {"content-type": "text/html"}, b"<html>Please log in", "http://server/x")
    with pytest.raises(errors.ProtocolError, match=r"http://server/x.*text/html.*Please log in"):
        parse_json(page)


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[" * 100_000, b"", b"{'a': 1}"])
def test_broken_json_is_a_protocol_error(body: bytes) -> None:
    """Neither bad encoding nor absurd depth lets another exception through."""
    with pytest.raises(errors.ProtocolError):
        parse_json(Reply(200, {}, body, "http://server/x"))


@pytest.mark.parametrize("total", [-1, None, -9.2e18, "4", True, 1e300])
def test_an_odd_total_is_unknown(total: object) -> None:
    """What is no count is not taken for one."""
    body = {"stage": "Running inference...", "progress": {"current": 2, "total": total}}
    state = parse_job(reply(body))
    assert (state.current, state.total) == (2, None)


def test_an_unknown_stage_is_survived() -> None:
    """It is kept in the server's words."""
    state = parse_job(job_reply(stage="aborted"))
    assert (state.stage, state.stage_text) == (Stage.UNKNOWN, "aborted")


@pytest.mark.parametrize("body", [[], None, {"progress": {}}, {"stage": 3}])
def test_an_answer_without_a_stage_is_a_protocol_error(body: object) -> None:
    """A pop that names no stage cannot be understood."""
    with pytest.raises(errors.ProtocolError, match="stage"):
        parse_job(reply(body))


def test_a_result_that_is_no_object_is_a_protocol_error() -> None:
    """Dropping it in silence would shift the rest."""
    with pytest.raises(errors.ProtocolError, match="result"):
        parse_job(job_reply([{"annotation": {}}, 7]))


def test_the_servers_exception_is_read_whole() -> None:
    """Type, message and traceback."""
    fault = {"type": "ValueError", "message": "at image 2", "traceback": "Traceback ..."}
    exception = parse_job(job_reply(stage="Error", exception=fault)).exception
    assert exception is not None
    assert (exception.type, exception.message, exception.traceback) == tuple(fault.values())


def test_only_a_known_version_of_the_extension_counts() -> None:
    """Features of an unknown version, and unknown features, are left alone."""
    listed = {"version": 1, "features": ["ack", "teleport"], "lease_s": 60}
    info = parse_info(reply({"predsession": listed, "max_batch_size": None}))
    assert info.features == {"ack"}
    assert info.lease == 60.0
    assert parse_info(reply({"predsession": {**listed, "version": 2}})).features == frozenset()


def test_a_submit_must_name_its_job() -> None:
    """Without a uuid there is nothing to poll; a refusal is told as one."""
    assert parse_submitted(reply({"inference_request_uuid": "u"})) == "u"
    with pytest.raises(errors.ProtocolError, match="inference_request_uuid"):
        parse_submitted(reply({"message": "Scheduled"}))
    with pytest.raises(errors.RefusedError, match="busy"):
        parse_submitted(reply({"success": False, "message": "busy"}))


def test_an_unknown_job_is_told_from_another_500() -> None:
    """A stock server says so only in the text."""
    assert is_unknown_job(UNKNOWN_JOB)
    assert not is_unknown_job(reply({"detail": "boom"}, 500))


def test_item_errors_are_told_from_predictions() -> None:
    """An item error has no annotation."""
    fault = parse_item_fault({"error": {"type": "ValueError", "message": "bad"}})
    assert fault is not None
    assert (fault.type, fault.message) == ("ValueError", "bad")
    assert parse_item_fault({"annotation": {}, "error": None}) is None
