"""What this process has on its way in gRPC, and what that means for the child of a fork.

A child that was forked between calls can make a connection of its own. One that was forked while a call was
on its way may hang or crash as soon as it touches gRPC, of whose threads and locks it inherited a half: there
nothing is touched, and every call is an error that says so.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

import grpc

from predsession.errors import ConnectError


class Forgetful(Protocol):
    """What starts again in the child of a fork."""

    def forget(self) -> grpc.Channel | None:
        """Give up what is the parent's, and return it."""


class Abandoned(Protocol):
    """What can have no answer in the child of a fork."""

    def abandon(self) -> None:
        """End with an error that says so."""


class Process:
    """Counts the calls that are on their way."""

    def __init__(self) -> None:
        self.used: bool = False
        self.forked: bool = False
        self._broken = False
        self._going = 0
        self._lock = threading.Lock()
        self._channels: weakref.WeakSet[Forgetful] = weakref.WeakSet()
        self._futures: weakref.WeakSet[Abandoned] = weakref.WeakSet()
        # To end what belongs to the parent would touch gRPC: it is kept.
        self._inherited: list[grpc.Channel | None] = []

    def add(self, channel: Forgetful) -> None:
        """Tell a connection of the next fork.

        Parameters
        ----------
        channel : Forgetful
            It is held weakly.
        """
        self._channels.add(channel)

    def watch(self, future: Abandoned) -> None:
        """Tell what waits for an answer of the next fork.

        Parameters
        ----------
        future : Abandoned
            It is held weakly.
        """
        self._futures.add(future)

    def check(self, endpoint: str) -> None:
        """Refuse to touch gRPC where that is unsafe.

        Parameters
        ----------
        endpoint : str
            For the message.

        Raises
        ------
        ConnectError
            If this process was forked while calls were on their way.
        """
        if self._broken:
            raise ConnectError(
                f"{endpoint}: this process was forked while calls were on their way, which gRPC does not "
                "survive: start it by spawn, or fork between calls",
                url=endpoint,
                permanent=True,
            )
        self.used = True

    def begin(self) -> None:
        """Note that a call sets out."""
        with self._lock:
            self._going += 1

    def end(self) -> None:
        """Note that a call has ended."""
        with self._lock:
            self._going -= 1

    def after_fork(self) -> None:
        """Run in the child of a fork."""
        self.forked = self.forked or self.used
        self._broken = self._broken or self._going > 0
        self._going = 0
        self._lock = threading.Lock()
        for channel in list(self._channels):
            self._inherited.append(channel.forget())
        for future in list(self._futures):
            future.abandon()


PROCESS = Process()
os.register_at_fork(after_in_child=PROCESS.after_fork)
