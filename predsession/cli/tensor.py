"""``predsession tensor``: what a server's models take and give, a call, its times, many calls."""

from __future__ import annotations

import argparse
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from predsession.cli.codes import OK, print_json, print_line, say
from predsession.cli.commands import add_command
from predsession.cli.numbers import count_of, seconds
from predsession.cli.reach import TRUST, add_token
from predsession.errors import SourceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from predsession.tensor import TensorSession

    Arrays = dict[str, npt.NDArray[np.generic]]

EXAMPLES = """\
examples:
  predsession tensor info grpc://192.168.1.20:8001
  predsession tensor infer http://127.0.0.1:8000 frame.npy --model detect --out f.npz
  predsession tensor infer grpc://127.0.0.1:8001 a=left.npy b=right.npy --local add.onnx
  predsession tensor profile grpc://127.0.0.1:8001 frame.npy --model detect --count 50
  predsession tensor bench grpc://127.0.0.1:8001 --model net --shape x=1,3,224,224
"""
_PARTS = (
    "frame_duration", "sd2rv_duration", "commu_duration", "board_duration", "prepr_duration",
    "infer_duration", "pospr_duration",
)  # fmt: skip

_ANY_SIDE = 224
"""What is advised where any will do."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    tensor = add_command(
        commands,
        "tensor",
        "named tensors through an Open Inference Protocol server: Triton, MLServer, ours",
        notes=f"{EXAMPLES}\n{TRUST}",
        codes=(),
    )
    inner = tensor.add_subparsers(required=True, metavar="CALL")
    info = _command(inner, "info", "what the server is, and what its models take and give")
    info.set_defaults(run=_info)
    infer = _command(inner, "infer", "run arrays through a model")
    infer.add_argument("--out", metavar="FILE", type=Path, help="write the outputs there, as .npz")
    infer.set_defaults(run=_infer)
    profile = _command(inner, "profile", "how long a call takes, and what of it")
    profile.set_defaults(run=_profile)
    bench = _command(inner, "bench", "how many calls a second")
    bench.add_argument(
        "--depth",
        type=count_of("calls"),
        default=1,
        metavar="N",
        help="calls on their way at once (default: 1)",
    )
    bench.set_defaults(run=_bench)
    for each in (profile, bench):
        each.add_argument(
            "--count", type=count_of("calls"), default=100, metavar="N", help="so many calls (default: 100)"
        )
        each.add_argument("--shape", action="append", default=[], metavar="NAME=SHAPE",
            help="for noise instead of a file, where the model leaves the shape open: x=1,3,224,224 "
            "(repeatable)")  # fmt: skip
    for each in (infer, profile, bench):
        files = each.add_argument("inputs", nargs="*", metavar="INPUT",
            help="FILE.npz, NAME=FILE.npy, or FILE.npy for a model with one input")  # fmt: skip
        if each is not infer:
            files.help = f"{files.help}; noise where there is none"
        each.add_argument("--timeout", type=seconds(10**9), default=90.0, metavar="SECONDS",
            help="for each call (default: 90)")  # fmt: skip
        each.add_argument("--compress", choices=("NONE", "IN", "INOUT"), default="NONE",
            help="what is compressed: nothing, requests, or replies too (default: NONE)")  # fmt: skip


def _command(
    inner: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    """Add a command with what each needs: the server, the model, how to be let in."""
    command = add_command(inner, name, text, notes=TRUST)
    command.add_argument(
        "url", metavar="URL", help="the server: grpc://host:port, http://host:port, or a host"
    )
    command.add_argument("--model", metavar="NAME", help="which model; needed where there are several")
    command.add_argument(
        "--local", metavar="PATH", help="put this model on the server for as long as it takes"
    )
    add_token(command)
    command.add_argument("--header", action="append", default=[], metavar="NAME:VALUE",
        help="sent along with every call (repeatable)")  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def _session(args: argparse.Namespace, *, with_profile: bool = False) -> TensorSession:
    """Open a session as the arguments say."""
    from predsession.http.auth import find_token
    from predsession.tensor import TensorSession

    if args.model is not None and args.local is not None:
        raise SourceError(
            "--model and --local: a model that is put there has its file's name; leave out --model"
        )
    headers: dict[str, str] = {}
    for each in args.header:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise SourceError(f"--header {name!r}: wanted NAME:VALUE")
        headers[name.strip()] = value.strip()
    return TensorSession(
        args.url,
        models=None if args.model is None else [args.model],
        local_model_path=args.local,
        frame_timeout=getattr(args, "timeout", 90.0),
        compress_option=getattr(args, "compress", "NONE"),
        with_profile=with_profile,
        token=find_token(args.token, None, explicit_url=None),
        headers=headers,
    )


def _info(args: argparse.Namespace) -> int:
    """Run ``info``."""
    with _session(args) as session:
        facts = session.server_facts
        if args.json:
            models = {
                name: {
                    "inputs": {key: dict(info) for key, info in session.get_input_info(name).items()},
                    "outputs": {key: dict(info) for key, info in session.get_output_info(name).items()},
                }
                for name in session.get_model_names()
            }
            server = {"name": facts.name, "version": facts.version, "extensions": sorted(facts.extensions)}
            print_json({"server": server, "models": models})
            return OK
        print_line(f"{facts.name} {facts.version}: {', '.join(sorted(facts.extensions)) or 'no extensions'}")
        session.show_input_output_info()
    return OK


def _infer(args: argparse.Namespace) -> int:
    """Run ``infer``."""
    import numpy as np

    if args.out is not None and args.out.suffix != ".npz":
        raise SourceError(f"--out {args.out}: outputs are written as .npz")
    if args.out is not None and not args.out.parent.is_dir():
        raise SourceError(f"--out {args.out}: there is no folder {args.out.parent}")
    with _session(args) as session:
        data = _read(args.inputs, session)
        results = {name: np.asarray(value) for name, value in session(data, model_name=_one(session)).items()}
    if args.out is not None:
        _write(args.out, results)
        say(f"{args.out} has {', '.join(results)}")
    for name, array in results.items():
        if args.json:
            print_json({"name": name, "shape": list(array.shape), "dtype": array.dtype.name})
        else:
            print_line(f"{name}  {list(array.shape)}  {array.dtype.name}")
    return OK


def _write(path: Path, results: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Write an .npz: NumPy's own way takes no array that is called "file"."""
    import numpy as np

    with zipfile.ZipFile(path, "w") as archive:
        for name, array in results.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, _storable(array), allow_pickle=False)


def _storable(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return an array that can be read back without pickle."""
    import numpy as np

    if array.dtype.kind == "O":  # bytes of different lengths, which NumPy pads with zeros
        return np.array(array.tolist(), np.bytes_)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _one(session: TensorSession) -> str:
    """Return the session's model, of which there must be one."""
    names = session.get_model_names()
    if len(names) > 1:
        raise SourceError(f"--model is needed: the server has {', '.join(names)}")
    return names[0]


def _read(
    texts: Iterable[str], session: TensorSession, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Arrays:
    """Read the inputs; with `shapes`, make noise for those that are not given."""
    known = session.get_input_info(_one(session))
    data: Arrays = {}
    for text in texts:
        for name, array in _arrays(text, list(known)):
            if name in data:
                raise SourceError(f"{text}: {name!r} is given twice")
            brain = name in known and known[name].datatype == "BF16" and array.dtype.name == "float32"
            # NumPy's files have no bfloat16: it is written as float32, and read as such.
            data[name] = array.astype(known[name].dtype) if brain else array
    for name, info in known.items():
        if name not in data and shapes is not None:
            data[name] = _noise(name, info["valid_shape"], info.dtype, shapes.get(name))
    return data


def _arrays(text: str, known: list[str]) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """Read one argument."""
    import numpy as np

    name, equals, path = text.partition("=")
    path = path if equals else text
    try:
        with Path(path).open("rb") as file:  # NumPy leaves one open that it cannot read
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.ndarray):
                several = {key: loaded[key] for key in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path} cannot be read as .npy or .npz: {error}") from None
    if not isinstance(loaded, np.ndarray):
        if equals:
            raise SourceError(f"{text}: an .npz has its own names; leave out {name}=")
        yield from several.items()
    elif equals:
        yield name, loaded
    elif len(known) == 1:
        yield known[0], loaded
    else:
        raise SourceError(f"{path}: the model takes {', '.join(known)}; say NAME={path}")


def _shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Read shapes."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, sides = text.partition("=")
        try:
            shapes[name] = tuple(int(side) for side in sides.split(","))
        except ValueError:
            equals = ""
        if not equals or min(shapes[name]) < 1:
            raise SourceError(f"--shape {text!r}: wanted NAME=1,3,224,224")
    return shapes


def _noise(
    name: str, valid: object, dtype: np.dtype[np.generic], shape: tuple[int, ...] | None
) -> npt.NDArray[np.generic]:
    """Make an input."""
    import numpy as np

    sides = tuple(valid) if isinstance(valid, list) else ()
    if shape is None and -1 in sides:
        some = ",".join(str(_ANY_SIDE if side == -1 else side) for side in sides)
        raise SourceError(
            f"{name} has the shape {list(sides)}, -1 for any: say such as --shape {name}={some}"
        )
    if dtype.kind == "O":
        raise SourceError(f"{name} takes texts, for which there is no noise: hand in a file")
    numbers = np.random.default_rng(0).random(shape or sides)
    return (numbers * 100).astype(dtype) if dtype.kind in "iu" else numbers.astype(dtype)


def _profile(args: argparse.Namespace) -> int:
    """Run ``profile``."""
    with _session(args, with_profile=True) as session:
        data = _read(args.inputs, session, _shapes(args.shape))
        for _ in range(args.count):
            session(data, model_name=_one(session))
        times = session.get_profile(_one(session))
    if args.json:
        print_json(times)
        return OK
    print(f"{'milliseconds':<16}{'average':>10}{'least':>10}{'most':>10}")
    for key in _PARTS:
        if key in times:
            one = times[key]
            print(f"{key:<16}{one['avg']:>10.2f}{one['min']:>10.2f}{one['max']:>10.2f}")
    if "board_duration" not in times:
        print("the server does not tell what of it is its own")
    return OK


def _bench(args: argparse.Namespace) -> int:
    """Run ``bench``."""
    with _session(args) as session:
        data = _read(args.inputs, session, _shapes(args.shape))
        name = _one(session)
        session(data, model_name=name)  # the first call also connects, and warms the model up
        began = time.perf_counter()
        for _ in session.map((data for _ in range(args.count)), model_name=name, depth=args.depth):
            pass
        elapsed = time.perf_counter() - began
    rate = args.count / elapsed
    if args.json:
        print_json({"calls": args.count, "depth": args.depth, "seconds": elapsed, "calls_per_s": rate})
    else:
        print(f"{args.count} calls, {args.depth} at once: {elapsed:.2f} s, {rate:.1f} a second")
    return OK
