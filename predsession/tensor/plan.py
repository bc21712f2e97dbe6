"""From what a caller handed in to what is asked of a model, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError, SourceError
from predsession.tensor.containers import Container, Data, container_of, to_numpy
from predsession.tensor.htensor import CPU, SERVER, HTensor, Stamp, check_key, read_device
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
    stamp : tuple of int or None
        Of just that array: the tensor's may be another by the time that this is sent.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    array: Array | None
    tensor: HTensor | None = None
    stamp: Stamp | None = None


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
    def partial(self) -> bool:
        """Whether inputs that may be left out were."""
        return len(self.given) < len(self.model.inputs)

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
    optional: Callable[[], frozenset[str]] = frozenset,
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
    optional : callable
        Returns the inputs that may be left out; called if some are.

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
    _check_names(model, data, optional)
    order = [facts.name for facts in model.inputs if facts.name in data] or list(data)
    known = {facts.name: facts for facts in model.inputs}
    seen = {
        name: value.snapshot if isinstance(value, HTensor) else (value, None) for name, value in data.items()
    }
    here = {name: content for name, (content, _) in seen.items() if content is not None}
    there = [value.container for value in data.values() if isinstance(value, HTensor) and value.container]
    container = container_of(here, there)
    given: list[Given] = []
    for name in order:
        value = data[name]
        if value is None:
            raise SourceError(f"input {name!r} of {model.name!r} is None; wanted an array or an HTensor")
        tensor = value if isinstance(value, HTensor) and value.on_server else None
        asked = _Asked(f"input {name!r} of {model.name!r}", known.get(name), tensor, *seen[name])
        given.append(_read(name, asked, kept))
    _check_keys(given)
    return Plan(model, tuple(given), _wishes(model, output_config), container)


def as_kept(given: Given, model: ModelFacts, kept: Kept | None) -> Given:
    """Return an input that is only on the server, as it is there by now.

    Parameters
    ----------
    given : Given
        As it was planned.
    model : ModelFacts
        Of which model.
    kept : Kept or None
        What is under its key, now that it is the call's turn.

    Returns
    -------
    Given
        With the datatype and the shape of that.

    Raises
    ------
    SourceError
        If nothing is, or what is does not fit.
    """
    facts = next((each for each in model.inputs if each.name == given.name), None)
    key = None if given.tensor is None else given.tensor.key
    what = f"input {given.name!r} of {model.name!r}"
    if kept is None:
        raise SourceError(
            f"{what} was to be kept as {key!r}, and is not: the call that was to keep it failed, or it was "
            "let go; run that call again"
        )
    _check_kept(kept, key, facts, what=what)
    return replace(given, datatype=kept.datatype, shape=kept.shape)


def _check_keys(given: Iterable[Given]) -> None:
    """Refuse one key for two different tensors: the server has room for one under it."""
    users: dict[str, list[Given]] = {}
    for each in given:
        if each.tensor is not None and each.tensor.key is not None:
            users.setdefault(each.tensor.key, []).append(each)
    for key, several in users.items():
        if len({each.stamp for each in several if each.array is not None}) > 1 or (
            len({each.array is None for each in several}) > 1
        ):
            names = ", ".join(repr(each.name) for each in several)
            raise SourceError(f"the key {key!r} is that of different tensors: the inputs {names}")


def _check_names(
    model: ModelFacts, data: Mapping[str, object], optional: Callable[[], frozenset[str]]
) -> None:
    """Refuse inputs that are not the model's, and a call without one of them."""
    if not model.inputs:
        if not data:
            raise SourceError(f"there is no input for {model.name!r}")
        return
    names = [facts.name for facts in model.inputs]
    odd = [repr(name) for name in data if name not in names]
    left_out = [name for name in names if name not in data]
    missing = [repr(name) for name in left_out if name not in optional()]
    if odd or missing:
        parts = [f"missing {', '.join(missing)}"] if missing else []
        parts += [f"unknown {', '.join(odd)}"] if odd else []
        raise SourceError(f"{model.name!r} takes {', '.join(map(repr, names))}: {'; '.join(parts)}")


class _Asked(NamedTuple):
    """An input as it was handed in."""

    what: str
    facts: TensorFacts | None
    tensor: HTensor | None
    content: object
    stamp: Stamp | None


def _read(name: str, asked: _Asked, kept: Mapping[str, Kept]) -> Given:
    """Check one input."""
    what, facts, tensor, content, stamp = asked
    if content is not None:
        array = to_numpy(content, what)
        shape, kind = tuple(array.shape), _datatype(array, facts, what)
        _check_shape(shape, facts, what)
        return Given(name, kind, shape, array, tensor, stamp)
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
    _check_kept(there, tensor.key, facts, what=what)
    return Given(name, there.datatype, there.shape, None, tensor, stamp)


def _check_kept(kept: Kept, key: str | None, facts: TensorFacts | None, *, what: str) -> None:
    """Refuse what is kept if the model does not take it."""
    if facts is not None and facts.datatype != kept.datatype:
        raise SourceError(f"{what} takes {facts.datatype}; {key!r} on the server is {kept.datatype}")
    _check_shape(kept.shape, facts, what, f"{key!r} on the server")


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


def _check_shape(
    shape: tuple[int, ...], facts: TensorFacts | None, what: str, whose: str = "the array"
) -> None:
    """Refuse a shape that the model does not take; -1 fits anything, on either side."""
    if facts is None or shape == facts.shape:
        return
    fits = len(shape) == len(facts.shape) and all(
        own in {wanted, -1} or wanted == -1 for own, wanted in zip(shape, facts.shape, strict=True)
    )
    if not fits:
        raise SourceError(f"{what} takes shape {list(facts.shape)}; {whose} has {list(shape)}")


def _wishes(model: ModelFacts, config: OutputConfig | None) -> tuple[Wish, ...]:
    """Return what is to become of each output."""
    if config is None:
        config = {}
    if not isinstance(config, Mapping):
        raise SourceError(f"output_config is {type(config).__name__}; wanted a dict, output name to a dict")
    names = [facts.name for facts in model.outputs]
    odd = [repr(name) for name in config if name not in names]
    if odd and not names:
        raise SourceError(f"output_config: the server does not say what {model.name!r} gives")
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
