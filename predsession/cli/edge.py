"""``predsession edge``: pictures through an edge runtime, a camera of its own, its models, its counters."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from predsession.cli.codes import OK, SERVER, SOME_FAILED, USAGE, print_json, print_line, say
from predsession.cli.commands import add_command
from predsession.cli.numbers import count_of, seconds
from predsession.errors import ItemError, PredSessionError, SourceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from predsession.edge.result import InferenceResult
    from predsession.inputs.items import Item
    from predsession.prediction import Prediction
    from predsession.wire.geometry import Size

LONGEST_S = (2**32 - 1) // 1000
"""The wire has milliseconds in 32 bits."""
EXAMPLES = """\
examples:
  predsession edge models --endpoint 192.168.1.20:50051
  predsession edge models --register /data/aipc/models/yolov8n.hef
  predsession edge infer photos/ --model yolov8n --json
  predsession edge subscribe camera0 --model yolov8n --fps 5 --count 100
  predsession edge stats --json
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    edge = add_command(
        commands, "edge", "an AI runtime on a camera or board, over gRPC", notes=EXAMPLES, codes=()
    )
    inner = edge.add_subparsers(required=True, metavar="CALL")
    text, codes = "run images through a model", (OK, SOME_FAILED, USAGE, SERVER)
    infer = add_command(inner, "infer", text, codes=codes)
    infer.add_argument("source", nargs="+", metavar="SOURCE", help="image files or folders")
    infer.add_argument(
        "--depth", type=int, default=4, metavar="N", help="calls on their way at once (default: 4)"
    )
    infer.add_argument(
        "--timeout", type=seconds(LONGEST_S), default=5.0, metavar="SECONDS", help="for each (default: 5)"
    )
    infer.add_argument("--save-images", metavar="DIR", help="write the pictures with what was found drawn")
    infer.add_argument("--overwrite", action="store_true", help="replace pictures that are there")
    infer.set_defaults(run=_infer)
    subscribe = add_command(inner, "subscribe", "run a camera of the runtime through a model")
    subscribe.add_argument("stream", metavar="STREAM", help="the camera's id")
    subscribe.add_argument(
        "--fps", type=_fps, default=10, metavar="N", help="frames a second at most (default: 10)"
    )
    subscribe.add_argument("--count", type=count_of("frames"), metavar="N", help="end after so many frames")
    subscribe.set_defaults(run=_subscribe)
    for each in (infer, subscribe):
        each.add_argument("--model", required=True, metavar="ID", help="the model's id")
    models = add_command(inner, "models", "what the runtime has; load or remove one")
    models.add_argument("--register", metavar="PATH", help="load this model, a path on the runtime's host")
    models.add_argument("--id", metavar="ID",
        help="with --register: what to call it (default: the file's name)")  # fmt: skip
    models.add_argument("--unregister", metavar="ID", help="remove this model")
    models.set_defaults(run=_models)
    stats = add_command(inner, "stats", "the runtime's counters")
    stats.set_defaults(run=_stats)
    for each in (infer, subscribe, models, stats):
        each.add_argument(
            "--endpoint",
            metavar="ADDRESS",
            help="host:port or a socket (default: $AI_RUNTIME_ENDPOINT, else the platform's own)",
        )
        each.add_argument("--json", action="store_true", help="print JSON")


def _fps(text: str) -> int:
    """Read a number of frames a second that the wire holds."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no whole number of frames a second: 0 (the runtime's choice) to {2**32 - 1}"
        )
    return value


def _infer(args: argparse.Namespace) -> int:
    """Run ``infer``."""
    from predsession.cli.predict import Report
    from predsession.edge import InferenceClient
    from predsession.export.drawings import Drawings
    from predsession.export.target import Target, existing_of
    from predsession.inputs.folders import is_clip
    from predsession.inputs.sources import open_source

    clip = next(filter(is_clip, args.source), None)
    if clip is not None:
        raise SourceError(
            f"{clip} is a video, and `edge infer` takes pictures only: write its frames to a folder, or run "
            "`predsession predict` on a server"
        )
    pictures = _Pictures(iter(open_source(args.source)))
    report = Report(as_json=args.json)
    failed = False
    with ExitStack() as stack:
        drawings = None
        if args.save_images:
            target = Target(path=Path(args.save_images), existing=existing_of(overwrite=args.overwrite))
            drawings = stack.enter_context(Drawings(target, args.source))
        client = stack.enter_context(InferenceClient(args.endpoint))
        results = client.infer_many(
            pictures, args.model, depth=args.depth, timeout_ms=round(args.timeout * 1000)
        )
        for outcome in pictures.outcomes(results):
            failed = failed or isinstance(outcome, ItemError)
            if drawings is not None:
                drawings.write(outcome)
            report.add(outcome)
        if drawings is not None:
            drawings.finish()
    report.end()
    return SOME_FAILED if failed else OK


class _Pictures:
    """Decodes images as they are asked for, and gives each result back to its own.

    Parameters
    ----------
    items : iterator of Item
        The images.
    """

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._waiting: deque[tuple[Item, Size] | ItemError] = deque()

    def __iter__(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield what can be decoded; note the rest in its place."""
        from predsession.inputs.images import image_loader
        from predsession.wire.geometry import Size

        for item in self._items:
            loader = image_loader(item)
            if loader is None:
                raise SourceError(f"{item.label} is a URL; fetch it first")
            try:
                picture = loader()
            except ItemError as error:
                self._waiting.append(error)
                continue
            self._waiting.append((item, Size(picture.shape[1], picture.shape[0])))
            yield picture

    def outcomes(self, results: Iterator[InferenceResult]) -> Iterator[Prediction | ItemError]:
        """Yield a prediction or an error for each image, in order."""
        for result in results:
            while isinstance(first := self._waiting.popleft(), ItemError):
                yield first
            yield _outcome(result, *first)
        yield from (each for each in self._waiting if isinstance(each, ItemError))


def _outcome(result: InferenceResult, item: Item, size: Size) -> Prediction | ItemError:
    """Return one image's prediction, or why there is none."""
    from dataclasses import replace

    from predsession.inputs.images import image_loader

    try:
        made = result.to_prediction(*size, index=item.index, name=item.name, path=item.path)
    except PredSessionError as error:  # the result's own, or that of numbers which are none
        return ItemError(
            f"{item.label} (input {item.index}): {error}",
            index=item.index,
            name=item.name,
            path=item.path,
            reason=str(error),
        )
    return replace(made, loader=image_loader(item))


def _subscribe(args: argparse.Namespace) -> int:
    """Run ``subscribe``."""
    from predsession.edge import InferenceClient

    with (
        InferenceClient(args.endpoint) as client,
        client.subscribe(args.stream, args.model, fps=args.fps) as frames,
    ):
        for number, result in islice(frames, args.count):
            if args.json:
                print_json(_frame_json(number, result))
            else:
                print_line(_frame_line(number, result))
        if frames.dropped:
            say(f"{frames.dropped} frames were dropped: this end is too slow for them")
    return OK


def _frame_json(number: int, result: InferenceResult) -> dict[str, object]:
    """Return a frame for JSON; boxes are x, y, width, height, 0 to 1 of the picture."""
    objects = [
        {"label": each.label, "score": each.score, "class_id": each.class_id, "bbox": list(each.bbox)}
        for each in result.objects
    ]
    return {"frame_sequence": number, "timestamp_ns": result.timestamp_ns, "objects": objects}


def _frame_line(number: int, result: InferenceResult) -> str:
    """Return a frame as a line for people."""
    found = [f"{each.score:.2f} {each.label}" for each in result.objects]
    return f"{number:>8}  {', '.join(found)}".rstrip()


def _models(args: argparse.Namespace) -> int:
    """Run ``models``."""
    if args.id is not None and args.register is None:
        raise SourceError("--id is what --register calls a model; add --register PATH")
    from dataclasses import asdict

    from predsession.edge import InferenceClient

    with InferenceClient(args.endpoint) as client:
        if args.unregister is not None:
            client.unregister_model(args.unregister)
        if args.register is not None:
            say(f"registered {client.register_model(args.register, args.id)}")
        models = client.list_models()
    if args.json:
        print_json([asdict(each) for each in models])
        return OK
    print(f"{'model':<24}  {'version':<10}  path")
    for each in models:
        print_line(f"{each.model_id:<24}  {each.version or '-':<10}  {each.model_path}")
    return OK


def _stats(args: argparse.Namespace) -> int:
    """Run ``stats``."""
    from predsession.edge import InferenceClient

    with InferenceClient(args.endpoint) as client:
        stats = client.get_stats()
    if args.json:
        print_json(stats)
        return OK
    print(f"device  {_percent(stats['device_utilization'])}, {stats['device_temperature']:.1f} °C")
    print(f"cpu     {_percent(stats['cpu_utilization'])}")
    print(f"memory  {stats['ram_used_kib'] >> 10} of {stats['ram_total_kib'] >> 10} MiB")
    print(f"{'model':<24}  {'calls':>10}  {'errors':>8}  {'ms':>8}  {'a second':>8}  {'queue':>5}")
    for each in stats["model_stats"]:
        print_line(
            f"{each['model_id']:<24}  {each['total_inferences']:>10}  {each['total_errors']:>8}  "
            f"{each['avg_latency_us'] / 1000:>8.1f}  {each['current_qps']:>8.1f}  {each['queue_depth']:>5}"
        )
    return OK


def _percent(share: float) -> str:
    """Return a utilization for people."""
    return "not known" if not share >= 0 else f"{share:.0%}"
