"""Run a server from its configuration until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from predsession.server.app import make_app
from predsession.server.config import EdgeDoor, Limits, Ready, ServerConfig
from predsession.server.connection import connections
from predsession.server.service import Service
from predsession.wire.jsontypes import JSONObject

if TYPE_CHECKING:
    # What gRPC's core writes to stderr by itself we say in our own words.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from predsession.server.edge.door import Door
    from predsession.server.oip.door import Door as TensorDoor

_KEEP_ALIVE_S = 75  # longer than clients pause between two polls, so that a pooled connection stays good
_GRACE_S = 10


class _Uvicorn(uvicorn.Server):
    """Leaves signals to us: uvicorn raises them again at its end, before we have cleaned up."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Take the port.

    Parameters
    ----------
    host : str
        An address or a name.
    port : int
        0 for any that is free.

    Returns
    -------
    socket.socket
        Listening, so that the first caller is not refused while the model loads.

    Raises
    ------
    OSError
        If the port is taken, or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's delay off only where it is; with the delay, every
    # answer on a kept connection takes 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def serve(config: ServerConfig, listener: socket.socket, *, ready: Ready | None = None) -> None:
    """Serve until a signal, or the end of stdin where that is followed.

    Parameters
    ----------
    config : ServerConfig
        How.
    listener : socket.socket
        From `listen`.
    ready : callable, optional
        Called once the server answers. With it signals are left alone, for only the main thread has them.

    Raises
    ------
    ModelLoadError
        If the model cannot be loaded.
    """
    with asyncio.Runner() as runner:
        runner.run(_serve(config, listener, ready))


async def _serve(config: ServerConfig, listener: socket.socket, ready: Ready | None) -> None:
    """Start the parts, serve, end the parts."""
    parts = _Parts.build(config)
    stdout = _put_aside_stdout() if config.oip is not None and config.announce else None
    server = _Uvicorn(_over_http(config, parts.service))
    loop = asyncio.get_running_loop()

    def end() -> None:
        parts.release()
        server.should_exit = True

    def end_from_outside() -> None:
        loop.call_soon_threadsafe(end)

    def tell(announcement: JSONObject) -> None:
        if ready is not None:
            ready(announcement, end_from_outside)

    _end_by_itself(end, signals=ready is None, stdin=config.follow_stdin)

    async def start() -> None:
        bound = await parts.start()
        await _announce(server, config, listener, tell, bound=bound, stdout=stdout)

    starting = asyncio.create_task(start())
    failed: list[BaseException] = []

    def look(task: asyncio.Task[None]) -> None:
        # What fails after the signal to end fails because of it: workers get it, too.
        error = None if task.cancelled() or parts.service.closing else task.exception()
        if error is not None:
            failed.append(error)
            end()

    starting.add_done_callback(look)
    try:
        # It answers from the first moment, if only that the models are being loaded.
        await server.serve(sockets=[listener])
    finally:
        await _end(starting, parts)
    if failed:
        raise failed[0]  # why the models could not be loaded


async def _end(starting: asyncio.Task[None], parts: _Parts) -> None:
    """End the parts, whether or not they have all begun."""
    starting.cancel()
    try:
        await asyncio.gather(starting, return_exceptions=True)
    finally:
        await parts.close()


@dataclass(frozen=True, slots=True)
class _Parts:
    """What there is beside the HTTP door."""

    service: Service
    edge: Door | None
    tensor: TensorDoor | None

    @classmethod
    def build(cls, config: ServerConfig) -> _Parts:
        """Make them, and take the addresses of the gRPC doors."""
        edge = None if config.edge is None else _edge_door(config.edge, config.limits)
        service = Service.build(config)
        return cls(service, edge, None if config.oip is None else _tensor_door(config, service))

    async def start(self) -> dict[str, Sequence[str]]:
        """Load the models and open the doors; return where these are."""
        await self.service.start()
        if self.edge is not None:
            await self.edge.open(self.service)
        if self.service.oip is not None and self.tensor is not None:
            await self.service.oip.start(self.service.runners)
            await self.tensor.open()
        doors = (("grpc", self.edge), ("oip", self.tensor))
        return {name: door.bound for name, door in doors if door is not None and door.bound}

    def release(self) -> None:
        """Let held calls answer, and start no worker any more: the server is about to end."""
        self.service.release()
        if self.edge is not None:
            self.edge.release()

    async def close(self) -> None:
        """End them, the doors first."""
        await asyncio.gather(*(door.close() for door in (self.edge, self.tensor) if door is not None))
        if self.service.oip is not None:
            await self.service.oip.close()
        await self.service.close()


def _over_http(config: ServerConfig, service: Service) -> uvicorn.Config:
    """Return how HTTP is spoken."""
    return uvicorn.Config(
        make_app(service),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        http=connections(config.limits),
        ssl_certfile=config.door.certfile,
        ssl_keyfile=config.door.keyfile,
    )


def _edge_door(config: EdgeDoor, limits: Limits) -> Door:
    """Take the addresses of the gRPC door."""
    # What gRPC's core writes to stderr by itself we say in our own words.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from predsession.server.edge.door import Door

    door = Door(config, limits)
    door.listen()
    return door


def _tensor_door(config: ServerConfig, service: Service) -> TensorDoor:
    """Make what answers calls with tensors, and take the addresses of its gRPC door."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # as above
    from predsession.server.oip.calls import Calls
    from predsession.server.oip.door import Door

    assert config.oip is not None, "asked before"
    service.oip = Calls(config.oip, config.limits)
    door = Door(config.oip, service.oip, config.limits, door=config.door)
    door.listen()
    return door


def _put_aside_stdout() -> int:
    """Have what models print in this process go to the log, and return where the announcement goes."""
    # It would come before the announcement, or fill a pipe from which nobody reads any more.
    if sys.stdout is not None:  # it is where it was closed
        sys.stdout.flush()
    aside = os.dup(1)
    os.dup2(2, 1)
    return aside


def _end_by_itself(end: Callable[[], None], *, signals: bool, stdin: bool) -> None:
    """End on signals and with stdin, where that is wanted."""
    if signals:
        _end_on_signals(end)
    if stdin:
        _end_with_stdin(end)


def _end_on_signals(end: object) -> None:
    """End gracefully on SIGTERM and SIGINT; a second one ends at once."""
    loop = asyncio.get_running_loop()
    assert callable(end)

    def handle(number: int) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
        logging.getLogger("predsession.server").info("signal %s: ending", signal.Signals(number).name)
        end()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)


def _end_with_stdin(end: object) -> None:
    """End when stdin does, which happens also when the process that started us is killed."""
    loop = asyncio.get_running_loop()
    assert callable(end)

    def follow() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(end)

    threading.Thread(target=follow, daemon=True, name="follow-stdin").start()


async def _announce(
    server: uvicorn.Server,
    config: ServerConfig,
    listener: socket.socket,
    tell: Callable[[JSONObject], None],
    *,
    bound: Mapping[str, Sequence[str]],
    stdout: int | None,
) -> None:
    """Say where the server is, once it answers."""
    while not server.started:
        await asyncio.sleep(0.005)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if config.door.certfile else "http"
    url = f"{scheme}://{shown}:{port}"
    names = ", ".join(spec.name for spec in config.models)
    logging.getLogger("predsession.server").info("serving %s on %s", names, url)
    announcement: JSONObject = {"url": url, **{name: list(one) for name, one in bound.items()}}
    tell(announcement)
    if config.announce:
        with os.fdopen(os.dup(1) if stdout is None else stdout, "w") as sink:
            sink.write(f"{json.dumps(announcement)}\n")
