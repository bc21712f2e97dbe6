"""``predsession info`` and ``predsession jobs``: what a server is, and what it is doing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from predsession.cli.codes import (
    OK,
    SERVER,
    SOME_FAILED,
    USAGE,
    leave_on_signals,
    print_json,
    print_line,
    say,
    speaks_utf8,
)
from predsession.cli.commands import add_command
from predsession.cli.reach import add_ca, add_token, add_url, url_of, verify_of
from predsession.errors import NotFoundError
from predsession.wire import calls
from predsession.wire.httpreply import parse_json

if TYPE_CHECKING:
    from predsession.http.caller import Caller
    from predsession.wire.replies import LiveJob


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    info = add_command(commands, "info", "what a server is and can do")
    info.set_defaults(run=_info)
    jobs = add_command(
        commands,
        "jobs",
        "what a server is doing; stop or clear a job",
        codes=(OK, SOME_FAILED, USAGE, SERVER),
    )
    one = jobs.add_mutually_exclusive_group()
    one.add_argument("--attach", metavar="ID",
                     help="go on with this job, or all of this session; print JSON lines")  # fmt: skip
    one.add_argument("--stop", metavar="UUID", help="stop this job; what is computed can be fetched")
    one.add_argument("--clear", metavar="UUID", help="stop this job and let the server forget it")
    jobs.set_defaults(run=_jobs)
    for each in (info, jobs):
        add_url(each)
        add_token(each)
        add_ca(each)
        each.add_argument("--json", action="store_true", help="print JSON")


@contextmanager
def _caller(args: argparse.Namespace) -> Iterator[Caller]:
    """Open a connection to a server."""
    from predsession.checks import check_token
    from predsession.http.auth import find_token
    from predsession.http.caller import Caller
    from predsession.http.transport import ConnectionOptions, HttpTransport

    url, options = url_of(args), ConnectionOptions(verify=verify_of(args))
    token = check_token(find_token(args.token, None, explicit_url=args.url))
    transport = HttpTransport(url, token=token, options=options)
    try:
        yield Caller(transport)
    finally:
        transport.close()


def _info(args: argparse.Namespace) -> int:
    """Run ``info``."""
    from predsession.wire.meta import ModelMeta
    from predsession.wire.replies import parse_info

    with _caller(args) as caller:
        info = parse_info(caller.call(calls.session_info()))
        meta = ModelMeta.from_json(parse_json(caller.call(calls.model_meta())))
        settings = parse_json(caller.call(calls.custom_settings()))
    if args.json:
        print_json({"info": info.raw, "classes": meta.names, "settings": settings})
        return OK
    names = ", ".join(meta.names[:8]) + (", ..." if len(meta.names) > 8 else "")
    inner = settings.get("settings") if isinstance(settings, dict) else settings
    print_line(f"server      {info.app_name or 'unnamed'}")
    print_line(f"task        {info.raw.get('task type', 'not said')}")
    print_line(f"classes     {len(meta.names)}: {names}")
    print_line(f"settings    {inner if isinstance(inner, str) else json.dumps(inner)}")
    print_line(f"extension   {', '.join(sorted(info.features)) or 'none: a stock server'}")
    return OK


def _jobs(args: argparse.Namespace) -> int:
    """Run ``jobs``."""
    if args.attach is not None:
        return _attach(args)
    from predsession.http.auth import show_url
    from predsession.jobs.forgotten import seems_forgotten

    with _caller(args) as caller:
        for uuid, call in ((args.stop, calls.stop), (args.clear, calls.clear)):
            if uuid is None:
                continue
            if seems_forgotten(caller, uuid):
                say(f"{show_url(url_of(args))} knows no job {uuid}")
                return SERVER
            caller.call(call(uuid))
        if args.stop is None and args.clear is None:
            return _list(caller, args)
    return OK


def _attach(args: argparse.Namespace) -> int:
    """Print what is left of a job, or of a session's jobs."""
    from predsession.export.jsonl import to_line
    from predsession.session import PredictionSession

    leave_on_signals()
    session_id, job = (args.attach, None) if _is_session(args) else (None, args.attach)
    way = {"token": args.token, "verify": verify_of(args)}
    with PredictionSession.attach(url_of(args), session_id, uuid=job, on_error="yield", **way) as session:
        for outcome in session:
            print(to_line(outcome, ascii_only=not speaks_utf8()), flush=True)
    return SOME_FAILED if session.errors else OK


def _is_session(args: argparse.Namespace) -> bool:
    """Whether the server lists jobs of a session of the id that is asked for."""
    from predsession.wire.replies import parse_job_list

    with _caller(args) as caller:
        try:
            return any(job.session == args.attach for job in parse_job_list(caller.call(calls.list_jobs())))
        except NotFoundError:
            return False


def _list(caller: Caller, args: argparse.Namespace) -> int:
    """Print the live jobs."""
    from predsession.http.auth import show_url
    from predsession.wire.replies import parse_job_list

    try:
        reply = caller.call(calls.list_jobs())
    except NotFoundError:
        shown = show_url(url_of(args))
        say(
            f"{shown} is a stock server, which cannot list its jobs; "
            "--attach, --stop and --clear work with a uuid"
        )
        return SERVER
    jobs = parse_job_list(reply)
    if args.json:
        print_json([job.raw for job in jobs])
        return OK
    print(f"{'uuid':<32}  {'session':<32}  {'done':>13}  {'age':>6}  stage")
    for job in jobs:
        print_line(_row(job))
    return OK


def _row(job: LiveJob) -> str:
    """Return a job's line."""
    total = "?" if job.total is None else job.total
    age = "?" if job.age is None else f"{job.age:.0f} s"
    done = f"{job.current or 0}/{total}"
    return f"{job.uuid:<32}  {job.session or '-':<32}  {done:>13}  {age:>6}  {job.stage_text}"
