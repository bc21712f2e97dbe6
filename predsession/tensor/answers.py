"""What a server answers is looked at before anything is made of it, whatever is to become of it."""

from __future__ import annotations

from predsession.errors import ProtocolError
from predsession.wire.oip.datatypes import datatype, elements
from predsession.wire.oip.messages import Tensor
from predsession.wire.oip.packing import bytes_to_elements


def check_output(tensor: Tensor, told: str | None, *, elsewhere: bool = False) -> None:
    """Refuse an output that cannot be.

    Parameters
    ----------
    tensor : Tensor
        As it came, its bytes elsewhere perhaps.
    told : str or None
        The datatype that the model's metadata has for it; None where that does not name it.
    elsewhere : bool
        Whether its bytes may be in a region of memory: over gRPC that looks as if there were none.

    Raises
    ------
    ProtocolError
        If its datatype is another or none, a side is negative, or its bytes are not as many as that takes.
    """
    kind = datatype(tensor.datatype)
    if told is not None and told != tensor.datatype:
        raise ProtocolError(f"output {tensor.name!r} is {tensor.datatype}; the model's metadata says {told}")
    try:
        wanted = kind.nbytes(tensor.shape)
    except ProtocolError as error:
        raise ProtocolError(f"output {tensor.name!r}: {error}") from None
    if tensor.data is None or (elsewhere and not tensor.data):
        return
    found = len(tensor.data)
    what = "bytes"
    if wanted is None:
        found, wanted = len(bytes_to_elements(tensor.data)), elements(tensor.shape)
        what = "elements"
    if found != wanted:
        raise ProtocolError(
            f"output {tensor.name!r}, {tensor.datatype} {list(tensor.shape)[:8]}, has {found} {what}; "
            f"it takes {wanted}"
        )


def placed(error: ProtocolError, model: str, where: str) -> ProtocolError:
    """Return what is wrong with an answer, with the model and the address that it came from.

    Parameters
    ----------
    error : ProtocolError
        What is wrong.
    model : str
        The server's name for it.
    where : str
        The address, as it may be shown.

    Returns
    -------
    ProtocolError
        The same one, where it says both already.
    """
    text = str(error)
    if where in text and model in text:
        return error
    return ProtocolError(f"{model!r} at {where}: {text}", url=error.url or where)
