"""What a model has done, in the protocol's own counters: how often, and how long together.

References
----------
.. [1] Triton, "Statistics Extension".
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from predsession.server.oip.served import Times
from predsession.wire.jsontypes import JSONObject


@dataclass(slots=True)
class _Sum:
    """How often, and nanoseconds."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        """Count once."""
        self.count += 1
        self.ns += ns

    def to_json(self) -> JSONObject:
        """Return it as the protocol has it."""
        return {"count": self.count, "ns": self.ns}


@dataclass(slots=True)
class Statistics:
    """The counters of one model; they only grow."""

    last_ms: int = 0
    success: _Sum = field(default_factory=_Sum)
    fail: _Sum = field(default_factory=_Sum)
    queue: _Sum = field(default_factory=_Sum)
    pre: _Sum = field(default_factory=_Sum)
    infer: _Sum = field(default_factory=_Sum)
    post: _Sum = field(default_factory=_Sum)

    def succeeded(self, times: Times) -> None:
        """Count an answer.

        Parameters
        ----------
        times : Times
            How long it took.
        """
        self.last_ms = time.time_ns() // 1_000_000
        self.success.add(times.total)
        for total, ns in (
            (self.queue, times.queue),
            (self.pre, times.pre),
            (self.infer, times.infer),
            (self.post, times.post),
        ):
            total.add(ns)

    def failed(self, ns: int) -> None:
        """Count a call that was refused or failed, after so many nanoseconds."""
        self.fail.add(ns)

    def to_json(self, name: str, version: str) -> JSONObject:
        """Return them as ``ModelStatistics``.

        Parameters
        ----------
        name : str
            The model's.
        version : str
            The model's.

        Returns
        -------
        JSONObject
            Every call is a batch of one.
        """
        nothing = _Sum().to_json()
        computed = {
            "compute_input": self.pre.to_json(),
            "compute_infer": self.infer.to_json(),
            "compute_output": self.post.to_json(),
        }
        return {
            "name": name,
            "version": version,
            "last_inference": self.last_ms,
            "inference_count": self.success.count,
            "execution_count": self.success.count,
            "inference_stats": {
                "success": self.success.to_json(),
                "fail": self.fail.to_json(),
                "queue": self.queue.to_json(),
                **computed,
                "cache_hit": nothing,
                "cache_miss": nothing,
            },
            "batch_stats": [{"batch_size": 1, **computed}] if self.success.count else [],
        }
