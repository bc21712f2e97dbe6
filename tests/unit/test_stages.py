"""The table of stages."""

from __future__ import annotations

import itertools

import pytest

from predsession.wire.stages import STEPS, TERMINAL, IllegalStepError, Stage, parse_stage, step


def test_an_illegal_step_raises() -> None:
    """Every pair that the table does not have is refused, every pair that it has is taken."""
    for present, following in itertools.product(STEPS, STEPS):
        if following is present or following in STEPS[present]:
            assert step(present, following) is following
        else:
            with pytest.raises(IllegalStepError):
                step(present, following)


def test_nothing_follows_the_end() -> None:
    """A terminal stage has no step."""
    assert all(not STEPS[stage] for stage in TERMINAL)
    assert all(stage.terminal for stage in TERMINAL)


@pytest.mark.parametrize("text", ["aborted", None, 3, ""])
def test_what_is_not_in_the_table_is_unknown(text: object) -> None:
    """No text of a server raises."""
    assert parse_stage(text) is Stage.UNKNOWN
