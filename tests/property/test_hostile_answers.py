"""The client under attack: whatever a server answers is a value or an error of our tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hostile import GOOD, META, bodies, check_words, read_all
from hypothesis import given, settings
from hypothesis import strategies as st

from predsession.errors import PredSessionError
from predsession.prediction import Prediction
from predsession.tracks import tracked_ids
from predsession.wire.httpreply import Reply, error_of, is_unknown_job, parse_json
from predsession.wire.meta import ModelMeta
from predsession.wire.replies import (
    parse_info,
    parse_item_fault,
    parse_job,
    parse_job_list,
    parse_submitted,
)

PARSERS: dict[str, Callable[[Reply], object]] = {
    "get_session_info": parse_info,
    "get_model_meta": lambda reply: ModelMeta.from_json(parse_json(reply)),
    "inference_batch_async": parse_submitted,
    "pop_inference_results": parse_job,
    "get_inference_progress": parse_job,
    "get_inference_result": lambda reply: tracked_ids(parse_json(reply)),
    "list_inference_requests": parse_job_list,
}


def value_of(read: Callable[[], object]) -> object:
    """Return a value, or the error of ours in its place; any other error goes through."""
    try:
        return read()
    except PredSessionError as error:
        return check_words(error)


@pytest.mark.parametrize("endpoint", PARSERS)
@given(st.data(), st.sampled_from([200, 200, 200, 202, 301, 400, 401, 404, 429, 500, 503]))
@settings(max_examples=150, deadline=None)
def test_any_answer_is_a_value_or_an_error_of_ours(endpoint: str, data: st.DataObject, status: int) -> None:
    """A sound answer, spoilt in one to three places: every parser returns, or raises from our tree."""
    reply = Reply(status, {}, data.draw(bodies(GOOD[endpoint])), "http://127.0.0.1:1/x")
    value = value_of(lambda: PARSERS[endpoint](reply))
    assert isinstance(error_of(reply), PredSessionError)
    assert is_unknown_job(reply) in {True, False}
    if isinstance(value, ModelMeta):
        value_of(lambda: (value.to_json(), [value.color(name) for name in value.names]))


@given(bodies(GOOD["pop_inference_results"]))
@settings(max_examples=300, deadline=None)
def test_any_result_can_be_asked_for_everything(body: bytes) -> None:
    """What came along with a pop: each property, picture, line and copy is a value, or an error of ours."""
    state = value_of(lambda: parse_job(Reply(200, {}, body)))
    for item in getattr(state, "results", ()):
        fault = parse_item_fault(item)
        made = value_of(
            lambda item=item: Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
        )
        if fault is None and isinstance(made, Prediction):
            read_all(made)
