"""A transport that answers from a script, and the answers to put into one."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from predsession.errors import TransportError
from predsession.inputs.uploads import Part
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply

Answer = Reply | TransportError | Callable[[Call], Reply]


class ScriptedTransport:
    """Answers each endpoint from its own list; the last answer of a list is repeated.

    Parameters
    ----------
    **answers : list
        By endpoint: replies, errors to raise, or functions of the call.
    """

    def __init__(self, **answers: Sequence[Answer]) -> None:
        self._answers = {endpoint: deque(replies) for endpoint, replies in answers.items()}
        self.calls: list[Call] = []
        self.parts: dict[str, list[list[bytes]]] = defaultdict(list)

    def send(
        self,
        call: Call,
        parts: Sequence[Part] = (),
        *,
        on_bytes: Callable[[int], None] | None = None,
        read_timeout: float | None = None,
    ) -> Reply:
        """Answer from the script."""
        self.calls.append(call)
        bodies = []
        for part in parts:
            with part.open() as stream:
                bodies.append(stream.read())
            if on_bytes is not None:
                on_bytes(part.nbytes)
        self.parts[call.endpoint].append(bodies)
        answers = self._answers[call.endpoint]
        answer = answers.popleft() if len(answers) > 1 else answers[0]
        if isinstance(answer, TransportError):
            raise answer
        return answer if isinstance(answer, Reply) else answer(call)

    def fetch(self, url: str, *, max_bytes: int, cancelled: Callable[[], bool]) -> Reply:
        """Fetch nothing."""
        raise TransportError(f"{url} is not in the script")

    def close(self) -> None:
        """Do nothing."""

    def endpoints(self) -> list[str]:
        """Return the endpoints that were called, in order."""
        return [call.endpoint for call in self.calls]


def reply(body: object, status: int = 200, **headers: str) -> Reply:
    """Return a JSON answer."""
    named = {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return Reply(status, named, json.dumps(body).encode(), "http://server/endpoint")


def job_reply(
    results: Sequence[object] = (),
    *,
    stage: str = "Running inference...",
    finished: bool = False,
    current: int = 0,
    total: int = 0,
    exception: object = None,
) -> Reply:
    """Return an answer to a pop."""
    progress = {"status": stage, "current": current, "total": total, "is_size": False}
    return reply(
        {
            "uuid": "u1",
            "stage": stage,
            "progress": progress,
            "pending_results": list(results),
            "final_result": False,
            "exception": exception,
            "finished": finished,
            "has_result": False,
        }
    )


UNKNOWN_JOB = reply(
    {"detail": {"title": "Oops!", "message": 'RuntimeError("... there is no such uuid in ...")'}}, 500
)
