"""From what a caller handed in to what is asked of a model, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError, SourceError
from predsession.tensor.containers import Container, Data, container_of, to_numpy
from predsession.tensor.htensor import CPU, SERVER, HTensor, check_key, read_device
from predsession.wire.oip.datatypes import DATATYPES, INT4_RANGE, datatype_of
from predsession.wire.oip.facts import ModelFacts, TensorFacts

Array = npt.NDArray[np.generic]
OutputConfig = Mapping[str, Mapping[str, object]]
_CONFIG_KEYS = {"device", "key"}


@dataclass(frozen=True, slots=True)
class Kept:
    """What a session knows of a tensor on the server.

    Parameters
    ----------
    datatype : str
        The protocol's name.
    shape : tuple of int
        -1 where a side is not known.
    """

    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """An input of a call.

    Parameters
    ----------
    name, datatype : str
        As the model has them.
    shape : tuple of int
        Its own.
    array : ndarray or None
        None where it is only on the server.
    tensor : HTensor or None
        What it was handed in as, if it lives on the server.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    array: Array | None
    tensor: HTensor | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to become of an output.

    Parameters
    ----------
    facts : TensorFacts
        What is known of it.
    configured : bool
        Whether it comes back as an `HTensor`.
    here, there : bool
        Whether it is sent back, and whether it stays on the server.
    key : str or None
        What it is called there.
    device : None, str or list of str
        As it was said.
    """

    facts: TensorFacts
    configured: bool = False
    here: bool = True
    there: bool = False
    key: str | None = None
    device: str | list[str] | None = CPU


@dataclass(frozen=True, slots=True)
class Plan:
    """A call, checked.

    Parameters
    ----------
    model : ModelFacts
        Of which model; `name` is the server's name for it.
    given : tuple of Given
        In the model's order.
    wishes : tuple of Wish
        One for each output, in the model's order; none where the model's outputs are not known.
    container : Container
        What results come back in.
    """

    model: ModelFacts
    given: tuple[Given, ...]
    wishes: tuple[Wish, ...]
    container: Container

    @property
    def plain(self) -> bool:
        """Whether every output is simply to be sent."""
        return not any(wish.configured for wish in self.wishes)


def make_plan(
    model: ModelFacts,
    data: Mapping[str, Data | HTensor],
    output_config: OutputConfig | None,
    *,
    kept: Mapping[str, Kept],
) -> Plan:
    """Check a call.

    Parameters
    ----------
    model : ModelFacts
        Which.
    data : mapping of str to ndarray, torch.Tensor or HTensor
        By the input's name.
    output_config : mapping or None
        Output name to ``{"device": ..., "key": ...}``.
    kept : mapping of str to Kept
        What is on the server, by its key.

    Returns
    -------
    Plan
        What is to be asked.

    Raises
    ------
    SourceError
        If a name, a shape or a dtype is not the model's; the message says both.
    """
    if not isinstance(data, Mapping):
        raise SourceError(f"data is {type(data).__name__}; wanted a dict, input name to array")
    _check_names(model, data)
    order = [facts.name for facts in model.inputs] or list(data)
    known = {facts.name: facts for facts in model.inputs}
    here = {
        name: value.data if isinstance(value, HTensor) else value
        for name, value in data.items()
        if not (isinstance(value, HTensor) and value.data is None)
    }
    container = container_of(here)
    given = tuple(_read(name, data[name], known.get(name), model.name, kept) for name in order)
    return Plan(model, given, _wishes(model, output_config), container)


def _check_names(model: ModelFacts, data: Mapping[str, object]) -> None:
    """Refuse inputs that are not the model's, and a call without one of them."""
    if not model.inputs:
        if not data:
            raise SourceError(f"there is no input for {model.name!r}")
        return
    names = [facts.name for facts in model.inputs]
    odd = [repr(name) for name in data if name not in names]
    missing = [repr(name) for name in names if name not in data]
    if odd or missing:
        parts = [f"missing {', '.join(missing)}"] if missing else []
        parts += [f"unknown {', '.join(odd)}"] if odd else []
        raise SourceError(f"{model.name!r} takes {', '.join(map(repr, names))}: {'; '.join(parts)}")


def _read(
    name: str, value: Data | HTensor, facts: TensorFacts | None, model: str, kept: Mapping[str, Kept]
) -> Given:
    """Check one input."""
    what = f"input {name!r} of {model!r}"
    tensor = value if isinstance(value, HTensor) and value.on_server else None
    content = value.data if isinstance(value, HTensor) else value
    if content is not None:
        array = to_numpy(content, what)
        shape, kind = tuple(array.shape), _datatype(array, facts, what)
        _check_shape(shape, facts, what)
        return Given(name, kind, shape, array, tensor)
    if tensor is None or tensor.key is None:
        raise SourceError(
            f"{what} is an HTensor without data: it was not sent back, and does not live on the server"
        )
    there = kept.get(tensor.key)
    if there is None:
        keys = ", ".join(map(repr, kept)) or "nothing"
        raise SourceError(
            f"{what} is kept as {tensor.key!r}, which this session does not keep: it keeps {keys}"
        )
    if facts is not None and facts.datatype != there.datatype:
        raise SourceError(f"{what} takes {facts.datatype}; {tensor.key!r} on the server is {there.datatype}")
    _check_shape(there.shape, facts, what)
    return Given(name, there.datatype, there.shape, None, tensor)


def _datatype(array: Array, facts: TensorFacts | None, what: str) -> str:
    """Return the datatype to send an array as, or refuse it."""
    own = datatype_of(array.dtype)
    if facts is None:
        if own is None:
            raise SourceError(f"{what} is {array.dtype}, for which the protocol has no datatype")
        return own.wire
    wanted = DATATYPES.get(facts.datatype)
    if wanted is None:
        raise ProtocolError(f"{what} is of datatype {facts.datatype!r}, which the protocol does not have")
    exact = own is not None and own.wire == wanted.wire
    if not exact and not (wanted.wire in INT4_RANGE and array.dtype == wanted.dtype):
        raise SourceError(
            f"{what} takes {wanted.wire} ({wanted.dtype}); the array is {array.dtype}: "
            f"array.astype({wanted.dtype.name!r}) if that is what is meant"
        )
    if wanted.wire in INT4_RANGE:
        low, high = INT4_RANGE[wanted.wire]
        whole = array.astype(np.int16)
        if whole.size and not (low <= whole.min() and whole.max() <= high):
            raise SourceError(
                f"{what} takes {wanted.wire}, {low} to {high}; the array has {whole.min()} to {whole.max()}"
            )
    return wanted.wire


def _check_shape(shape: tuple[int, ...], facts: TensorFacts | None, what: str) -> None:
    """Refuse a shape that the model does not take; -1 fits anything, on either side."""
    if facts is None:
        return
    fits = len(shape) == len(facts.shape) and all(
        -1 in {own, wanted} or own == wanted for own, wanted in zip(shape, facts.shape, strict=True)
    )
    if not fits:
        raise SourceError(f"{what} takes shape {list(facts.shape)}; the array has {list(shape)}")


def _wishes(model: ModelFacts, config: OutputConfig | None) -> tuple[Wish, ...]:
    """Return what is to become of each output."""
    if config is None:
        config = {}
    if not isinstance(config, Mapping):
        raise SourceError(f"output_config is {type(config).__name__}; wanted a dict, output name to a dict")
    names = [facts.name for facts in model.outputs]
    odd = [repr(name) for name in config if name not in names]
    if odd:
        raise SourceError(
            f"output_config: {model.name!r} gives {', '.join(map(repr, names))}, not {', '.join(odd)}"
        )
    wishes = tuple(
        _wish(facts, config[facts.name]) if facts.name in config else Wish(facts) for facts in model.outputs
    )
    keys = [wish.key for wish in wishes if wish.key is not None]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise SourceError(f"output_config: the key {', '.join(twice)} is given to two outputs")
    return wishes


def _wish(facts: TensorFacts, config: Mapping[str, object]) -> Wish:
    """Read what is to become of one output."""
    what = f"output_config[{facts.name!r}]"
    if not isinstance(config, Mapping) or set(config) - _CONFIG_KEYS:
        raise SourceError(f'{what} is {config!r}; wanted {{"device": ..., "key": ...}}')
    device, key = config.get("device"), config.get("key")
    if not (device is None or isinstance(device, str | list | tuple | set | frozenset)):
        raise SourceError(f"{what}: device is {device!r}")
    if not (key is None or isinstance(key, str)):
        raise SourceError(f"{what}: key is {key!r}; wanted a str")
    places = read_device(device, what)
    check_key(places, key, what)
    said = device if isinstance(device, str) or device is None else [str(each) for each in device]
    return Wish(facts, True, CPU in places, SERVER in places, key, said)
