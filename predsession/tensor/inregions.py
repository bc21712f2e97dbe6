"""Tensors in shared memory, on a Triton server of the same machine.

A region is a piece of shared memory that both have open; a call names it, and the bytes are not sent. How
large an output will be is known where its shape is fixed, else from the time before: the first of a dynamic
shape travels once.

References
----------
.. [1] Triton, "System-Shared-Memory Extension".
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from multiprocessing.shared_memory import SharedMemory

from predsession.errors import (
    NotFoundError,
    PredSessionError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
    ServerFaultError,
    SessionClosedError,
)
from predsession.tensor.door import Door
from predsession.tensor.ledger import Record
from predsession.tensor.plan import Wish
from predsession.tensor.residency import Output, Sent, arrived, packed_input
from predsession.wire.oip.datatypes import datatype
from predsession.wire.oip.messages import Buffer, Tensor, Wanted
from predsession.wire.oip.regions import REGION, SIZE

_LEAVE_SECONDS = 2.0
_LOOK_SECONDS = 0.02


_CLOSED = "the session was closed while a call was under way"


class _Region:
    """A region, and how much of it is used; any thread may free it, and afterwards it cannot be used."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        """What the server calls it, and this machine."""
        self.size = size
        self.used = size
        self._lock = threading.RLock()
        self._memory: SharedMemory | None = SharedMemory(name, create=True, size=size)

    def write(self, data: Buffer) -> None:
        """Fill it."""
        with self._lock:
            self._view[: len(data)] = data
            self.used = len(data)

    def read(self) -> bytes:
        """Return a copy of what is in it."""
        with self._lock:
            return bytes(self._view[: self.used])

    @property
    def _view(self) -> memoryview:
        """Its bytes."""
        buffer = None if self._memory is None else self._memory.buf
        if buffer is None:
            raise SessionClosedError(_CLOSED)
        return buffer

    def remove(self) -> None:
        """Remove it from this machine; it may be done twice."""
        with self._lock:
            memory, self._memory = self._memory, None
            if memory is not None:
                memory.close()
                with contextlib.suppress(FileNotFoundError):
                    memory.unlink()

    def where(self, size: int | None = None) -> Mapping[str, int | str]:
        """Say in a call where the bytes are, or are to be."""
        return {REGION: self.name, SIZE: self.used if size is None else size}


class InRegions:
    """Keeps tensors in shared memory.

    Parameters
    ----------
    door : Door
        The server.
    record : Record
        Takes down which regions there are, for whoever comes after us if we are killed.
    """

    def __init__(self, door: Door, record: Record) -> None:
        self._door = door
        self._record = record
        self._token = secrets.token_hex(6)  # sessions may share a record
        self._owner = os.getpid()
        # Held while the server is told of a region: so the end waits for who is telling, and misses nothing.
        self._lock = threading.RLock()
        self._closed = False
        self._live: dict[str, _Region] = {}
        """Each from its making to its freeing, whoever has it in between."""
        self._numbers = itertools.count()
        self._regions: dict[str, _Region] = {}
        self._asked: dict[str, _Region] = {}
        """Where outputs of the call under way go, by their keys."""
        self._busy: deque[str] = deque()
        """Regions that are gone here, and that the server did not let go: a call used them."""
        self._sizes: dict[tuple[str, str], int] = {}
        self._empty: dict[str, Buffer] = {}

    @classmethod
    def probed(cls, door: Door, record: Record) -> InRegions | None:
        """Make one if the server can see this machine's memory.

        Parameters
        ----------
        door : Door
            The server.
        record : Record
            As above.

        Returns
        -------
        InRegions or None
            None on another machine, in another container, or where the server does not allow it.
        """
        made = cls(door, record)
        try:
            made._free(made._new(8))
        except (PredSessionError, OSError):
            made.close()
            return None
        return made

    @property
    def parameters(self) -> Mapping[str, str]:
        """What a call must say for it: nothing."""
        return {}

    def input(self, sent: Sent) -> Tensor:
        """Return an input as it travels."""
        given = sent.given
        if sent.key is None:
            return packed_input(sent)
        if sent.fresh:
            assert sent.packed is not None, "what is fresh has bytes"
            self._put(sent.key, sent.packed)
        if sent.key in self._empty:
            return Tensor(given.name, given.datatype, given.shape, self._empty[sent.key])
        region = self._regions.get(sent.key)
        if region is None:
            raise SessionClosedError(_CLOSED)
        return Tensor(given.name, given.datatype, given.shape, None, region.where())

    def wanted(self, wish: Wish, *, apart: bool) -> Wanted | None:
        """Return an output as it is asked for, or None if it is not."""
        if not wish.there:
            return Wanted(wish.facts.name) if wish.here else None
        assert wish.key is not None, "what is kept has a key"
        self._unask(wish.key)
        size = self._size_of(wish)
        if not size:
            return Wanted(wish.facts.name)
        region = self._regions.get(wish.key)
        if region is None or region.size < size or apart:
            region = self._new(size)
        self._asked[wish.key] = region
        return Wanted(wish.facts.name, region.where(size))

    def output(self, wish: Wish, tensor: Tensor | None) -> Output:
        """Take an output from a reply, or from memory."""
        if not wish.there:
            return arrived(wish, tensor)
        assert wish.key is not None, "what is kept has a key"
        region = self._asked.pop(wish.key, None)
        if tensor is None:
            raise ProtocolError(f"the reply lacks output {wish.facts.name!r}")
        if region is None and tensor.data is not None:  # it came: how large it would be was not known
            self._sizes[_name_of(wish)] = len(tensor.data)
            self._put(wish.key, tensor.data)
            return Output(tensor.datatype, tensor.shape, tensor.data if wish.here else None)
        if region is None:
            raise ProtocolError(f"output {wish.facts.name!r} is in a region that nobody asked for")
        # The reply says nothing of the region; there may be more room in it than the output took.
        used = datatype(tensor.datatype).nbytes(tensor.shape)
        if used is None or used > region.size:
            if self._regions.get(wish.key) is not region:
                self._free(region)
            raise ProtocolError(
                f"output {wish.facts.name!r} is {tensor.datatype} {list(tensor.shape)}, for which its region "
                f"of {region.size} bytes was not made"
            )
        if not used:
            if self._regions.get(wish.key) is not region:
                self._free(region)
            self._put(wish.key, b"")
            return Output(tensor.datatype, tensor.shape, b"" if wish.here else None)
        region.used = used
        self._swap(wish.key, region)
        data = region.read() if wish.here else None
        return Output(tensor.datatype, tensor.shape, data)

    def mends(self, error: ResponseError, wishes: Iterable[Wish]) -> bool:
        """Tell a server that was started anew of the regions; have outputs travel that found no room."""
        wishes = list(wishes)
        for wish in wishes:
            self._unask(wish.key or "")
        if isinstance(error, NotFoundError) and "shared memory region" in str(error):
            with self._lock:
                if self._closed:
                    raise SessionClosedError(_CLOSED)
                for region in list(self._regions.values()):
                    with contextlib.suppress(ResponseError):  # one that it still knows
                        self._door.register(region.name, f"/{region.name}", region.size)
            return True
        if not isinstance(error, ServerFaultError) or "should be at least" not in str(error):
            return False
        names = [_name_of(wish) for wish in wishes if wish.there and -1 in wish.facts.shape]
        known = [name for name in names if self._sizes.pop(name, None) is not None]
        return bool(known)

    def failed(self, wishes: Iterable[Wish], *, answered: bool) -> list[str]:
        """Clear up after a call that failed: its regions may be half written, or written yet."""
        del answered
        gone: list[str] = []
        for key in (wish.key for wish in wishes if wish.there and wish.key is not None):
            region = self._asked.pop(key, None)
            if region is None:
                continue
            gone.append(key)
            if self._regions.get(key) is region:
                del self._regions[key]
            self._free(region)
        return gone

    def forget(self, keys: Iterable[str]) -> None:
        """Let kept tensors go."""
        for key in keys:
            self._empty.pop(key, None)
            region = self._regions.pop(key, None)
            if region is not None:
                self._free(region)

    def close(self) -> None:
        """Let everything go, what calls under way have made of it too."""
        if os.getpid() != self._owner:
            return  # it is the parent's
        with self._lock:
            self._closed = True
            for region in list(self._live.values()):
                self._free(region)
        self._asked.clear()
        self._regions.clear()
        self._empty.clear()
        ends = time.monotonic() + _LEAVE_SECONDS
        while self._still_busy() and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)

    def _unask(self, key: str) -> None:
        """Forget where an output was to go, if that is not where the last one of its key is."""
        region = self._asked.pop(key, None)
        if region is not None and self._regions.get(key) is not region:
            self._free(region)

    def _size_of(self, wish: Wish) -> int | None:
        """Return how many bytes an output will have, if that is known and its shape tells how many it had."""
        if not datatype(wish.facts.datatype).bits:
            return None
        if -1 in wish.facts.shape:
            return self._sizes.get(_name_of(wish))
        return datatype(wish.facts.datatype).nbytes(wish.facts.shape)

    def _put(self, key: str, data: Buffer) -> None:
        """Write bytes into the region of a key."""
        if not len(data):  # there are no regions without a byte
            self.forget([key])
            self._empty[key] = data
            return
        self._empty.pop(key, None)
        region = self._regions.get(key)
        if region is None or region.size < len(data):
            region = self._new(len(data))
            self._swap(key, region)
        region.write(data)

    def _swap(self, key: str, region: _Region) -> None:
        """Put a region in the place of another."""
        before = self._regions.get(key)
        self._regions[key] = region
        self._empty.pop(key, None)
        if before is not None and before is not region:
            self._free(before)

    def _new(self, size: int) -> _Region:
        """Make a region, and tell the server."""
        with self._lock:
            if self._closed:
                raise SessionClosedError(_CLOSED)
            self._still_busy()
            name = f"predsession-{self._token}-{next(self._numbers)}"
            self._record.add_region(name)
            try:
                region = self._live[name] = _Region(name, size)
            except BaseException:
                self._record.remove_region(name)
                raise
            try:
                self._door.register(name, f"/{name}", size)
            except ResponseError:
                self._free(region, known=False)
                raise
            except BaseException:  # it may know it
                self._free(region)
                raise
            return region

    def _free(self, region: _Region, *, known: bool = True) -> None:
        """Tell the server to forget a region, and remove it; of several threads one does."""
        if os.getpid() != self._owner:
            return  # it is the parent's
        if self._live.pop(region.name, None) is None:
            return
        region.remove()
        if known:
            self._busy.append(region.name)
            self._still_busy()
        else:
            self._record.remove_region(region.name)

    def _still_busy(self) -> bool:
        """Have the server forget what is gone here; it does not while a call uses it, or has just ended."""
        with self._lock:
            for _ in range(len(self._busy)):
                name = self._busy.popleft()
                if self._unregistered(name):
                    self._record.remove_region(name)
                else:
                    self._busy.append(name)
            return bool(self._busy)

    def _unregistered(self, name: str) -> bool:
        """Whether the server knows a region no more; one that is gone has forgotten it."""
        try:
            self._door.unregister(name)
        except ServerFaultError as error:
            return "in use" not in str(error)
        except (RequestTimeoutError, SessionClosedError):
            return False  # nobody knows: the next session will
        except PredSessionError:
            return True
        return True


def _name_of(wish: Wish) -> tuple[str, str]:
    """Return what the size of an output is remembered by."""
    return wish.facts.name, wish.key or ""
