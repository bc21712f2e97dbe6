"""How long a call took, and what of it: sums, so that the parts make up the whole.

======================  ==================================  ==============================================
key                     what                                made up of
======================  ==================================  ==============================================
``frame_duration``      the whole call                      ``sd2rv``, and this process before and after
``sd2rv_duration``      from sending to receiving           ``commu`` + ``board``
``commu_duration``      the way there and back
``board_duration``      on the server                       ``prepr`` + ``infer`` + ``pospr``
``prepr_duration``      waiting there, bytes to arrays
``infer_duration``      the model
``pospr_duration``      arrays to bytes
======================  ==================================  ==============================================

The keys are hbm_infer's. What a server does not tell is not there: of the server's parts, either all or none.
Where it tells them of some calls only (Triton's counters do, as long as nobody else calls), averages are over
these, so that they add up, too.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from predsession.wire.oip.facts import Counters
from predsession.wire.oip.messages import Parameters
from predsession.wire.oip.residency import INFER_NS, POST_NS, PRE_NS, QUEUE_NS


@dataclass(frozen=True, slots=True)
class ServerTimes:
    """What a server says of one call; seconds.

    Parameters
    ----------
    pre, infer, post : float
        Before the model, waiting included; the model; after it.
    """

    pre: float
    infer: float
    post: float

    @property
    def whole(self) -> float:
        """All of it."""
        return self.pre + self.infer + self.post


def told(parameters: Parameters) -> ServerTimes | None:
    """Return the times that a reply has in its parameters.

    Parameters
    ----------
    parameters : mapping
        Of the reply.

    Returns
    -------
    ServerTimes or None
        None where they are not there, or are no times.
    """
    told = [parameters.get(key) for key in (QUEUE_NS, PRE_NS, INFER_NS, POST_NS)]
    times = [
        each / 1e9 for each in told if isinstance(each, int) and not isinstance(each, bool) and each >= 0
    ]
    if len(times) < len(told):
        return None
    queue, pre, infer, post = times
    return ServerTimes(queue + pre, infer, post)


def counted(before: Counters | None, after: Counters | None) -> ServerTimes | None:
    """Return the times of the one call between two looks at a server's counters.

    Parameters
    ----------
    before, after : Counters or None
        As the server told them.

    Returns
    -------
    ServerTimes or None
        None where it does not count, or somebody else called in between.
    """
    if before is None or after is None or after.calls - before.calls != 1:
        return None
    pre = after.queue_ns - before.queue_ns + after.input_ns - before.input_ns
    return ServerTimes(
        pre / 1e9, (after.infer_ns - before.infer_ns) / 1e9, (after.output_ns - before.output_ns) / 1e9
    )


class Meter:
    """Times of one model's calls; any thread may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._sums: dict[bool, dict[str, tuple[int, float, float, float]]] = {True: {}, False: {}}
        """Of calls with the server's parts, and of all."""

    def add(self, frame: float, call: float, server: ServerTimes | None) -> None:
        """Add a call.

        Parameters
        ----------
        frame : float
            Seconds of the whole.
        call : float
            Seconds from sending to receiving.
        server : ServerTimes or None
            What the server says of it.
        """
        times = {"frame_duration": frame, "sd2rv_duration": call}
        if server is not None:
            times["commu_duration"] = call - server.whole
            times["board_duration"] = server.whole
            times["prepr_duration"], times["pospr_duration"] = server.pre, server.post
            times["infer_duration"] = server.infer
        with self._lock:
            self._last = {key: seconds * 1e3 for key, seconds in times.items()}
            for whole in {server is not None, False}:
                sums = self._sums[whole]
                for key, value in self._last.items():
                    count, total, least, most = sums.get(key, (0, 0.0, value, value))
                    sums[key] = (count + 1, total + value, min(least, value), max(most, value))

    def last(self) -> dict[str, float]:
        """Return the last call's times, in milliseconds.

        Returns
        -------
        dict of str to float
            Empty before the first.
        """
        with self._lock:
            return dict(self._last)

    def all(self) -> dict[str, dict[str, float]]:
        """Return all calls' times, in milliseconds.

        Returns
        -------
        dict of str to dict
            Key to ``avg``, ``min`` and ``max``.
        """
        with self._lock:
            sums = self._sums[True] or self._sums[False]
            return {
                key: {"avg": total / count, "min": least, "max": most}
                for key, (count, total, least, most) in sums.items()
            }
