"""A request against what the model takes: everything is looked at before the model sees any of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from predsession.server.models.tensors import TensorFacts, TensorSpec
from predsession.server.oip.keeping import Session
from predsession.server.oip.served import Given
from predsession.server.statuses import BadCallError
from predsession.wire.oip import regions
from predsession.wire.oip.messages import InferRequest, Parameters, Tensor, Wanted
from predsession.wire.oip.residency import KEEP, KEPT, SEND, SESSION

_LONGEST_KEY = 1024
_CLASSIFICATION = "classification"


@dataclass(frozen=True, slots=True)
class Output:
    """An output that is wanted.

    Parameters
    ----------
    name : str
        As the model has it.
    key : str
        Under which it is kept; empty for not at all.
    sent : bool
        Whether its bytes are.
    """

    name: str
    key: str = ""
    sent: bool = True


def check_inputs(request: InferRequest, facts: TensorFacts, session: Session | None) -> tuple[Given, ...]:
    """Check the inputs of a request.

    Parameters
    ----------
    request : InferRequest
        As it came.
    facts : TensorFacts
        What the model takes.
    session : Session or None
        Which has what is kept.

    Returns
    -------
    tuple of Given
        In the model's order.

    Raises
    ------
    BadCallError
        If one is missing, unknown, there twice, or not as the model wants it.
    CallError
        NOT_FOUND, if one is said to be kept, and is not.
    """
    specs = {spec.name: spec for spec in facts.inputs}
    _check_names("input", [one.name for one in request.inputs], list(specs))
    came = {one.name: one for one in request.inputs}
    missing = [name for name in specs if name not in came]
    if missing:
        raise BadCallError(f"input {missing[0]!r} is missing; the model wants {', '.join(map(repr, specs))}")
    return tuple(_input(came[name], spec, session) for name, spec in specs.items())


def _input(tensor: Tensor, spec: TensorSpec, session: Session | None) -> Given:
    """Check one input."""
    if regions.REGION in tensor.parameters:
        raise BadCallError(f"input {spec.name}: this server has no shared memory; send the bytes")
    _check_key(f"input {spec.name}", tensor.parameters, KEEP, session)
    said = f"{tensor.datatype} {list(tensor.shape)[:64]}"
    if tensor.datatype != spec.datatype or not spec.fits(tensor.shape):
        raise BadCallError(f"input {spec.name} is {said}; the model wants {spec}")
    if KEPT in tensor.parameters:
        return _kept(tensor, spec, session)
    if tensor.data is None:
        raise BadCallError(f"input {spec.name} came without its bytes")
    wanted = spec.kind.nbytes(tensor.shape)
    if wanted is not None and wanted != len(tensor.data):
        raise BadCallError(f"input {spec.name} has {len(tensor.data)} bytes; {said} takes {wanted}")
    return Given(spec, tensor.shape, tensor.data)


def _kept(tensor: Tensor, spec: TensorSpec, session: Session | None) -> Given:
    """Return an input that is on the server."""
    key = _check_key(f"input {spec.name}", tensor.parameters, KEPT, session)
    assert session is not None, "checked with the key"
    kept = session.find(key)
    if kept.datatype != tensor.datatype or kept.array.shape != tensor.shape:
        there = f"{kept.datatype} {list(kept.array.shape)}"
        raise BadCallError(
            f"input {spec.name} is {tensor.datatype} {list(tensor.shape)}; kept as {key!r} is {there}"
        )
    if tensor.data is not None:
        raise BadCallError(
            f"input {spec.name} came with bytes, and is said to be kept as {key!r}: one of the two"
        )
    return Given(spec, tensor.shape, None, kept.array)


def check_outputs(
    wanted: Sequence[Wanted], facts: TensorFacts, session: Session | None
) -> tuple[Output, ...]:
    """Check which outputs are wanted.

    Parameters
    ----------
    wanted : sequence of Wanted
        None stands for all.
    facts : TensorFacts
        What the model gives.
    session : Session or None
        Which is to have what is kept.

    Returns
    -------
    tuple of Output
        In the order that was asked for.

    Raises
    ------
    BadCallError
        If one is unknown, there twice, or is to be put where this server puts none.
    """
    names = [spec.name for spec in facts.outputs]
    _check_names("output", [one.name for one in wanted], names)
    outputs = tuple(_output(one, session) for one in wanted) or tuple(map(Output, names))
    keys = [one.key for one in outputs if one.key]
    if len(set(keys)) < len(keys):
        raise BadCallError("two outputs are to be kept under one key")
    return outputs


def _output(wanted: Wanted, session: Session | None) -> Output:
    """Check one output."""
    where = f"output {wanted.name}"
    if regions.REGION in wanted.parameters:
        raise BadCallError(f"{where}: this server has no shared memory")
    if wanted.parameters.get(_CLASSIFICATION):
        raise BadCallError(f"{where}: this server does not classify; ask for the tensor")
    send = wanted.parameters.get(SEND, True)
    if not isinstance(send, bool):
        raise BadCallError(f"{where}: {SEND} is {send!r}; it must be true or false")
    return Output(wanted.name, _check_key(where, wanted.parameters, KEEP, session), send)


def kept_inputs(request: InferRequest) -> dict[str, str]:
    """Return which inputs are to be kept: key to name.

    Parameters
    ----------
    request : InferRequest
        Checked.

    Returns
    -------
    dict
        In order.

    Raises
    ------
    BadCallError
        If two are to be kept under one key.
    """
    pairs = [(str(one.parameters[KEEP]), one.name) for one in request.inputs if KEEP in one.parameters]
    if len(dict(pairs)) < len(pairs):
        raise BadCallError("two inputs are to be kept under one key")
    return dict(pairs)


def _check_key(where: str, parameters: Parameters, name: str, session: Session | None) -> str:
    """Return a key, empty where there is none."""
    key = parameters.get(name, "")
    if name not in parameters:
        return ""
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
        raise BadCallError(f"{where}: {name} must be a text of 1 to {_LONGEST_KEY} characters")
    if session is None:
        raise BadCallError(f"{where}: {name} needs the request's parameter {SESSION}")
    return key


def _check_names(kind: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse names that are unknown or there twice."""
    for name, count in Counter(names).items():
        if name not in known:
            raise BadCallError(
                f"unexpected {kind} {name!r}; the model has {', '.join(map(repr, known)) or 'none'}"
            )
        if count > 1:
            raise BadCallError(f"{kind} {name!r} is there {count} times")
