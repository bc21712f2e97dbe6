"""What is stored, committed and sent again after each way out of a stream over Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_kit import Broker, started
from kafka_ways import WAYS, Stage, observe


@pytest.fixture(scope="module", params=["mock", pytest.param("tansu", marks=pytest.mark.soak)])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker."""
    with started(request.param) as one:
        yield one


@pytest.mark.parametrize("way", WAYS)
def test_way_out(broker: Broker, tmp_path: Path, way: str) -> None:
    """What is stored is committed, what is not stored comes again, and nothing is stored twice."""
    stage = Stage(broker, tmp_path)
    left = observe(stage, way)
    assert left.finally_stored == left.finally_committed == left.sent == 60
    assert left.doubled == 0
    assert left.committed <= left.stored
    if way == "kill -9":
        assert 30 <= left.stored < 60
        assert left.again == 60 - left.committed
        assert left.passed_over == left.stored - left.committed
    else:
        stored = 60 if way == "normal end" else 30
        assert left.stored == stored or way.startswith("SIGTERM")
        assert left.committed == left.stored
        # A member that a loaded machine keeps from its heartbeats has to join anew, and gets a batch again.
        assert left.again - left.passed_over == 60 - left.stored
        assert left.passed_over in {0, 10}
