"""What is said when a model is to be loaded.

References
----------
.. [1] Triton, "Model Repository Extension": ``config`` and ``file:``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from predsession.server.oip.threads import processors
from predsession.server.statuses import BadCallError
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSON, JSONObject, as_object
from predsession.wire.oip.residency import CORE_ID, ENVIRONMENT, QUANTIZATION, SESSION

Said = Mapping[str, bool | int | str | bytes]
_FILE, _CONFIG = "file:", "config"
_KNOWN = frozenset({_CONFIG, SESSION, CORE_ID, ENVIRONMENT})
_BACKENDS = frozenset({"", "onnxruntime", "onnxruntime_onnx"})


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """How a model is to be loaded.

    Parameters
    ----------
    session : str
        Whose it is to be; empty for nobody's.
    network : bytes or None
        The model itself, where it is sent.
    cores : frozenset of int
        The processors it may use; none for all.
    environment : mapping of str to str
        What it is told.
    quantization : JSONObject
        Scales and zero points of its tensors.
    """

    session: str = ""
    network: bytes | None = field(default=None, repr=False)
    cores: frozenset[int] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
    quantization: JSONObject = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing of how."""
        return not (self.network is not None or self.cores or self.environment or self.quantization)

    @classmethod
    def read(cls, name: str, said: Said) -> LoadOrder:
        """Read the parameters of a load.

        Parameters
        ----------
        name : str
            The model's.
        said : mapping
            As it came.

        Returns
        -------
        LoadOrder
            Checked.

        Raises
        ------
        BadCallError
            If one is unknown, or its value is none.
        """
        files = {key: value for key, value in said.items() if key.startswith(_FILE)}
        unknown = [key for key in said if key not in _KNOWN and key not in files]
        if unknown:
            text = f"a load has no parameter {unknown[0]!r}; it has {', '.join(sorted(_KNOWN))} and file:…"
            raise BadCallError(text)
        return cls(
            session=_text(said, SESSION),
            network=_network(files),
            cores=_cores(_text(said, CORE_ID)),
            environment=_environment(_text(said, ENVIRONMENT)),
            quantization=_quantization(name, _text(said, _CONFIG)),
        )


def _text(said: Said, name: str) -> str:
    """Return a parameter that is a text, empty where it is not there."""
    value = said.get(name, "")
    if not isinstance(value, str):
        raise BadCallError(f"{name} must be a text")
    return value


def _network(files: Said) -> bytes | None:
    """Return the network that was sent."""
    if not files:
        return None
    name, content = next(iter(files.items()))
    if len(files) > 1 or not name.endswith(".onnx") or not isinstance(content, bytes):
        names = ", ".join(files)[:300]
        raise BadCallError(
            f"a load may bring one ONNX file, as file:1/model.onnx, in bytes; it came with {names}"
        )
    return content


def _cores(text: str) -> frozenset[int]:
    """Return processors."""
    if not text:
        return frozenset()
    if not re.fullmatch(r"\s*\d{1,6}\s*(,\s*\d{1,6}\s*)*", text):
        raise BadCallError(f"{CORE_ID} is {text[:100]!r}; wanted numbers of processors, such as '0,1'")
    cores = frozenset(int(word) for word in text.split(","))
    there = processors()
    if not cores <= there:
        gone = ", ".join(map(str, sorted(cores - there)))
        raise BadCallError(
            f"{CORE_ID}: there is no processor {gone} for this server; it has {_listed(there)}"
        )
    return cores


def _listed(cores: frozenset[int]) -> str:
    """Write numbers down."""
    return ", ".join(map(str, sorted(cores)))


def _environment(text: str) -> dict[str, str]:
    """Return what a model is told."""
    content = _object(ENVIRONMENT, text)
    if not all(isinstance(value, str) for value in content.values()):
        raise BadCallError(f"{ENVIRONMENT} must be a JSON object of texts")
    return {name: str(value) for name, value in content.items()}


def _quantization(name: str, text: str) -> JSONObject:
    """Read a model's configuration: it must be of this model, and may have scales."""
    config = _object(_CONFIG, text)
    if config.get("name", name) != name:
        raise BadCallError(f"config is of model {config['name']!r}; this is {name!r}")
    for key in ("backend", "platform"):
        if config.get(key, "") not in _BACKENDS:
            raise BadCallError(f"config: {key} is {config[key]!r}; this server runs onnxruntime")
    if config.get("max_batch_size", 0) not in {0, None}:
        raise BadCallError("config: max_batch_size must be 0; this server makes no batches")
    parameters = as_object(config.get("parameters"))
    return read_scales(as_object(parameters.get(QUANTIZATION)).get("string_value"))


def read_scales(text: JSON) -> JSONObject:
    """Read scales as a configuration has them.

    Parameters
    ----------
    text : JSON
        To be a text, which is JSON; None where there are none.

    Returns
    -------
    JSONObject
        Not checked against a model.

    Raises
    ------
    BadCallError
        If it is something else.
    """
    if text is not None and not isinstance(text, str):
        raise BadCallError(f"{QUANTIZATION} must be a text of JSON")
    return _object(QUANTIZATION, text or "")


def _object(name: str, text: str) -> JSONObject:
    """Return a JSON object, empty for an empty text."""
    if not text:
        return {}
    try:
        content = loads(text.encode())
    except (ValueError, RecursionError) as error:
        raise BadCallError(f"{name} is no JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise BadCallError(f"{name} must be a JSON object")
    return content
