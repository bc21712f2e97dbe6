"""The stages of a job and the table of legal steps.

Reference: the strings are the protocol of Supervisely 6.74.51, recorded from a server
(docs/protocol.md). A server may name a stage that is not in the table; it is survived as `UNKNOWN`,
and only `finished` then says that the job has ended.
"""

from __future__ import annotations

from enum import Enum


class Stage(Enum):
    """Where a job stands; the value is the wire's string."""

    PREPARING = "Preparing model for inference..."
    INFERENCE = "Running inference..."
    POSTPROCESS = "Postprocess..."
    FINISHED = "Finished"
    CANCELLED = "Cancelled"
    ERROR = "Error"
    UNKNOWN = "(unknown)"

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return self in TERMINAL


TERMINAL = frozenset({Stage.FINISHED, Stage.CANCELLED, Stage.ERROR})

STEPS: dict[Stage, frozenset[Stage]] = {
    Stage.PREPARING: frozenset({Stage.INFERENCE}) | TERMINAL,
    Stage.INFERENCE: frozenset({Stage.POSTPROCESS}) | TERMINAL,
    Stage.POSTPROCESS: TERMINAL,
    Stage.FINISHED: frozenset(),
    Stage.CANCELLED: frozenset(),
    Stage.ERROR: frozenset(),
}
"""From each stage, the stages that may follow; staying where one is is always legal."""


class IllegalStepError(ValueError):
    """A job cannot go from the one stage to the other."""


def parse_stage(text: object) -> Stage:
    """Return the stage that the wire's string names, `Stage.UNKNOWN` for any other."""
    try:
        return Stage(text)
    except ValueError:
        return Stage.UNKNOWN


def step(present: Stage, following: Stage) -> Stage:
    """Take a step in the table.

    Parameters
    ----------
    present : Stage
        Where the job stands.
    following : Stage
        Where it is said to stand now.

    Returns
    -------
    Stage
        `following`.

    Raises
    ------
    IllegalStepError
        If the table has no such step. Nothing changes then.
    """
    if following is present or Stage.UNKNOWN in (present, following):
        return following
    if following not in STEPS[present]:
        raise IllegalStepError(f"a job cannot go from {present.value!r} to {following.value!r}")
    return following
