"""The table of stages."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

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


def test_the_documented_table_is_the_codes_own() -> None:
    """The table in docs/protocol.md has every stage, and after it what may follow."""
    text = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    _, _, after = text.partition("<!-- stages:")
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", after.partition("\n\n")[0], re.MULTILINE)
    documented = {
        Stage(name): {Stage(one) for one in re.findall(r"`([^`]+)`", following)} for name, following in rows
    }
    assert documented == STEPS
