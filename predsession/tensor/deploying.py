"""From a model on this machine's disk to what a server's repository extension takes.

References
----------
.. [1] Triton, "Model Repository Extension": the parameters ``config`` and ``file:...`` of a load.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.json_format import MessageToDict

from predsession.errors import SourceError
from predsession.tensor.door import LoadParameter
from predsession.wire.jsontypes import JSON, as_list, as_object
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.facts import ServerFacts
from predsession.wire.oip.residency import CORE_ID, ENVIRONMENT, EXTENSION, SESSION

OURS, TRITON = "predsession", "triton"
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is to be run; settled when it is loaded.

    Parameters
    ----------
    cores : tuple of int
        Which it may use; empty for any.
    environment : mapping of str to str
        What it is told.
    """

    cores: tuple[int, ...]
    environment: Mapping[str, str]

    @classmethod
    def read(cls, core_id: int | Iterable[int], environment: Mapping[str, str] | None) -> Options:
        """Read them as they are handed in.

        Parameters
        ----------
        core_id : int or iterable of int
            -1 for any.
        environment : mapping of str to str or None
            Names to values.

        Returns
        -------
        Options
            Checked.

        Raises
        ------
        SourceError
            If they are something else.
        """
        if not isinstance(core_id, int | Iterable):
            raise SourceError(f"core_id is {core_id!r}; wanted a core's number, several in a list, or -1")
        cores = (core_id,) if isinstance(core_id, int) else tuple(core_id)
        if any(not isinstance(core, int) or isinstance(core, bool) or core < -1 for core in cores):
            raise SourceError(
                f"core_id is {core_id!r}; wanted a core's number, several in a list, or -1 for any"
            )
        if not isinstance(environment, Mapping | None):
            raise SourceError(
                f"remote_environment is {type(environment).__name__}; wanted a dict, str to str"
            )
        told = dict(environment or {})
        if any(not isinstance(key, str) or not isinstance(value, str) for key, value in told.items()):
            raise SourceError("remote_environment has what is no text; wanted a dict, str to str")
        return cls(() if -1 in cores else cores, told)

    @property
    def given(self) -> list[str]:
        """The names of those that were said."""
        return ["core_id"] * bool(self.cores) + ["remote_environment"] * bool(self.environment)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on this machine's disk.

    Parameters
    ----------
    name : str
        The file's, or the folder's.
    path : Path
        An ONNX file, or a folder as in Triton's repository: ``1/model.onnx``, ``config.pbtxt``.
    """

    name: str
    path: Path

    def config(self) -> dict[str, JSON]:
        """Return its configuration, as JSON has it.

        Returns
        -------
        dict
            That of a plain ONNX network where there is none.

        Raises
        ------
        SourceError
            If it cannot be read.
        """
        text, said = self.path / "config.pbtxt", self.path / "config.json"
        try:
            if self.path.is_dir() and said.is_file():
                return dict(as_object(json.loads(said.read_text("utf-8"))))
            if self.path.is_dir() and text.is_file():
                message = text_format.Parse(text.read_text("utf-8"), pb.ModelConfig())
                return dict(MessageToDict(message, preserving_proto_field_name=True))
        except text_format.ParseError as error:
            raise SourceError(
                f"{text}: {error}; fields beyond those that are known here go into config.json beside it"
            ) from None
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.path}: its configuration cannot be read: {error}") from None
        return {"backend": "onnxruntime", "max_batch_size": 0}

    def files(self) -> dict[str, bytes]:
        """Return its files, by what a load calls them.

        Returns
        -------
        dict of str to bytes
            "file:1/model.onnx" and so on.

        Raises
        ------
        SourceError
            If they cannot be read, or are more than a message holds.
        """
        try:
            if self.path.is_file():
                return {"file:1/model.onnx": self.path.read_bytes()}
            found = sorted(each for each in self.path.rglob("*") if each.is_file())
            listed = [each for each in found if each.parent != self.path]
            if sum(each.stat().st_size for each in listed) > _MOST_BYTES:
                raise SourceError(
                    f"{self.path}: its files are more than {_MOST_BYTES:,} bytes, too much for a load"
                )
            return {f"file:{each.relative_to(self.path).as_posix()}": each.read_bytes() for each in listed}
        except OSError as error:
            raise SourceError(f"{self.path} cannot be read: {error}") from None


def find_local(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[LocalModel]:
    """Look at models on disk.

    Parameters
    ----------
    paths : path or iterable of paths
        ONNX files, or folders as in Triton's repository.

    Returns
    -------
    list of LocalModel
        In order.

    Raises
    ------
    SourceError
        If one is not there, is no model, or two have one name.
    """
    if not isinstance(paths, str | os.PathLike | Iterable):
        raise SourceError(f"local_model_path is {paths!r}; wanted an ONNX file or a model's folder")
    each = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not each:
        raise SourceError("local_model_path is empty; wanted an ONNX file or a model's folder")
    models = [_local(Path(path)) for path in each]
    check_unique([model.name for model in models], "local_model_path")
    return models


def _local(path: Path) -> LocalModel:
    """Look at one."""
    if path.is_dir():
        if not any(each.is_file() for each in path.glob("*/*")):
            raise SourceError(f"{path} is no model's folder: it has no version in it, such as 1/model.onnx")
        return LocalModel(path.resolve().name, path)
    if not path.is_file():
        raise SourceError(f"{path}: there is no such model; wanted an ONNX file or a model's folder")
    if path.suffix != ".onnx":
        raise SourceError(
            f"{path} is no .onnx file; other kinds go as a folder: 1/model.plan and config.pbtxt"
        )
    return LocalModel(path.stem, path)


def check_unique(names: list[str], what: str) -> None:
    """Refuse two of one name.

    Parameters
    ----------
    names : list of str
        As they were handed in.
    what : str
        The parameter's name.

    Raises
    ------
    SourceError
        If a name is there twice.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(
            f"{what} has {', '.join(map(repr, twice))} more than once: {', '.join(map(repr, names))}"
        )


def load_parameters(
    local: LocalModel | None, *, server: ServerFacts, name: str, options: Options, session: str
) -> dict[str, LoadParameter]:
    """Return what a load says.

    Parameters
    ----------
    local : LocalModel or None
        What is brought along; None for a model of the server's own repository.
    server : ServerFacts
        Who is to load it.
    name : str
        What it is to be called there.
    options : Options
        How it is to be run.
    session : str
        Whose it is.

    Returns
    -------
    dict of str to (str or bytes)
        For `Door.load`.

    Raises
    ------
    SourceError
        If this server has no counterpart for something.
    """
    ours = EXTENSION in server.extensions
    if not ours and server.name != TRITON:
        _refuse(local, options, server)
    said: dict[str, LoadParameter] = {}
    config: dict[str, JSON] = {}
    if local is not None:
        config = {**local.config(), "name": name}
        said.update(local.files())
    if ours:
        said[SESSION] = session
        if options.cores:
            said[CORE_ID] = ",".join(map(str, options.cores))
        if options.environment:
            said[ENVIRONMENT] = json.dumps(dict(options.environment))
    elif options.given:
        if local is None:
            raise SourceError(
                f"{' and '.join(options.given)}: on {server.name} these are part of a model's configuration, "
                "which goes along with local_model_path= only; write them into the repository's config.pbtxt"
            )
        config = _with_options(config, options)
    if config:
        said["config"] = json.dumps(config)
    return said


def _refuse(local: LocalModel | None, options: Options, server: ServerFacts) -> None:
    """Refuse what a server of another kind has no counterpart for."""
    if local is not None:
        raise SourceError(
            f"{server.name} {server.version} takes no model files over the network: put {local.path} into "
            "its repository, and pass models=[its name]"
        )
    if options.given:
        raise SourceError(f"{' and '.join(options.given)}: {server.name} {server.version} has no counterpart")


def _with_options(config: dict[str, JSON], options: Options) -> dict[str, JSON]:
    """Write options into a configuration of Triton's: cores are its devices, texts its parameters."""
    written = dict(config)
    if options.cores:
        groups = [dict(as_object(group)) for group in as_list(config.get("instance_group"))] or [{}]
        written["instance_group"] = [
            {**group, "kind": "KIND_GPU", "gpus": list(options.cores)} for group in groups
        ]
    told = {key: {"string_value": value} for key, value in options.environment.items()}
    if told:
        written["parameters"] = {**as_object(config.get("parameters")), **told}
    return written
