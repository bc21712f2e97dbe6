"""A long run with faults on one call in twenty: nothing lost, doubled or swapped, and memory flat."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fault_kit import live_jobs
from server_kit import until
from soak.faults import SHARE, counted, new_seed

from predsession.testing import RunningServer

MOST_GROWN = 32.0
"""MiB that the client's memory may grow, however long the run."""


def run(
    stock: bool, count: int, *, timeout: float, tell: Callable[[str], None], share: float = SHARE
) -> None:
    """Run so many images, tell and check the figures."""
    seed = new_seed()
    with RunningServer("pixels", stock=stock) as server:
        figures = counted(server.url, count, seed=seed, timeout=timeout, share=share)
        tell(f"soak: {'stock' if stock else 'embedded'} server, seed {seed}: {figures}")
        until(lambda: not live_jobs(server.url), "the last job to end")
    wrong = {name: figures[name] for name in ("lost", "doubled", "swapped")}
    assert wrong == dict.fromkeys(wrong, 0), f"seed {seed}: {figures}"
    assert figures["predictions"] == count
    assert figures["spoilt"] > 0, f"seed {seed}: no fault was made"
    assert figures["grown_mib"] < MOST_GROWN, f"seed {seed}: {figures}"


@pytest.mark.parametrize("stock", [False, True], ids=["embedded", "stock"])
def test_a_short_run(stock: bool, tell: Callable[[str], None]) -> None:
    """600 images, faults on 20 % of all calls: with 5 % one run in ten has none."""
    run(stock, 600, share=0.2, timeout=100, tell=tell)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stock", [False, True], ids=["embedded", "stock"])
def test_20000_images(stock: bool, tell: Callable[[str], None]) -> None:
    """20,000 images, faults on 5 % of all calls."""
    run(stock, 20_000, timeout=3500, tell=tell)
