"""The order of calls that share keys: no writer beside anybody, no deadlock, nobody overtaken for ever."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from server_kit import until

from predsession.errors import RequestTimeoutError
from predsession.tensor.plan import Kept
from predsession.tensor.table import Table

KEPT = Kept("FP32", (1,))
keys = st.sets(st.sampled_from("abc"), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(keys, keys), min_size=1, max_size=12))
def test_writers_are_alone(calls: list[tuple[set[str], set[str]]]) -> None:
    """Whatever keys calls use, from many threads at once: all end, and no writer meets anybody."""
    table = Table()
    lock = threading.Lock()
    inside: list[tuple[set[str], set[str]]] = []
    wrong: list[str] = []

    def call(reads: set[str], writes: set[str]) -> None:
        turn = table.enter(reads, dict.fromkeys(writes, KEPT), seconds=30)
        with lock:
            for others_reads, others_writes in inside:
                if writes & (others_reads | others_writes) or others_writes & reads:
                    wrong.append(f"{reads}/{writes} met {others_reads}/{others_writes}")
            inside.append((reads, writes))
        time.sleep(0)
        with lock:
            inside.remove((reads, writes))
        table.leave(turn)

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(call, *each) for each in calls]:
            future.result(60)
    assert wrong == []
    assert table.known() == {}
    assert table._entries == {}


def test_a_writer_is_not_overtaken() -> None:
    """Readers that come later wait behind a writer in the line, so that it gets its turn."""
    table = Table()
    first = table.enter("k", {}, seconds=1)
    order: list[str] = []
    lined_up = threading.Event()

    def write() -> None:
        lined_up.set()
        turn = table.enter((), {"k": KEPT}, seconds=30)
        order.append("writer")
        table.leave(turn)

    def read() -> None:
        turn = table.enter("k", {}, seconds=30)
        order.append("reader")
        table.leave(turn)

    writer = threading.Thread(target=write)
    writer.start()
    assert lined_up.wait(10)
    until(lambda: table._entries["k"].writer is not None, "the writer in the line")
    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: table._entries["k"].readers, "the reader behind it")
    assert order == []
    table.leave(first)
    writer.join(30)
    reader.join(30)
    assert order == ["writer", "reader"]


def test_who_gives_up_lets_nobody_overtake() -> None:
    """A call whose turn does not come is an error; those behind it still wait for those before it."""
    table = Table()
    first = table.enter((), {"k": KEPT}, seconds=1)
    with pytest.raises(RequestTimeoutError, match="have k in use for 0 s"):
        table.enter((), {"k": KEPT}, seconds=0)
    with pytest.raises(RequestTimeoutError):
        table.enter("k", {}, seconds=0)
    table.leave(first)
    table.leave(table.enter("k", {}, seconds=0))
    assert table._entries == {}


def test_what_is_coming() -> None:
    """A key on its way is known as what it will be, until its writer ends; then only as what it is."""
    table = Table()
    turn = table.enter((), {"k": KEPT}, seconds=1)
    assert table.known() == {"k": KEPT}
    table.leave(turn)
    assert table.known() == {}
    turn = table.enter((), {"k": KEPT}, seconds=1)
    table.put("k", Kept("INT8", (2,)), (1, 1), digest=b"d")
    table.leave(turn)
    assert table.known() == {"k": Kept("INT8", (2,))}
    assert (table.stamp("k"), table.look("k").digest) == ((1, 1), b"d")
    table.drop(["k", "never"])
    assert (table.known(), table.stamp("k"), table._entries) == ({}, None, {})
