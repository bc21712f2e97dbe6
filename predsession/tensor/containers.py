"""NumPy's arrays and torch's tensors: what goes in comes out. torch is never imported, only met.

bfloat16 is known to both, and NumPy has it from ml_dtypes; the bits are handed over as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.wire.oip.datatypes import BF16, DATATYPES

Array = npt.NDArray[np.generic]


class TorchTensor(Protocol):
    """What is used of a ``torch.Tensor``."""

    device: object

    def detach(self) -> TorchTensor:
        """Return it without its history."""

    def cpu(self) -> TorchTensor:
        """Return it in the processor's memory."""

    def contiguous(self) -> TorchTensor:
        """Return it in C order."""

    def numpy(self) -> Array:
        """Return it as an array that shares its memory."""

    def view(self, dtype: object) -> TorchTensor:
        """Return its bits as another dtype."""

    def to(self, device: object) -> TorchTensor:
        """Return it on a device."""


class _Torch(Protocol):
    """What is used of torch itself."""

    bfloat16: object
    int16: object
    Tensor: type

    def from_numpy(self, array: Array) -> TorchTensor:
        """Return a tensor that shares an array's memory."""


Data = Array | TorchTensor


def _torch() -> _Torch | None:
    """Return torch, if somebody imported it: else nothing can be one of its tensors."""
    return cast("_Torch | None", sys.modules.get("torch"))


def is_torch(value: object) -> bool:
    """Whether something is one of torch's tensors.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
        Whether it is.
    """
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value: object, what: str) -> Array:
    """Return an array, or a torch tensor's own memory as one.

    Parameters
    ----------
    value : ndarray or torch.Tensor
        What was handed in.
    what : str
        For messages: "input 'image'".

    Returns
    -------
    ndarray
        It shares the memory where it can.

    Raises
    ------
    SourceError
        If it is neither.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = _torch()
    if torch is None or not isinstance(value, torch.Tensor):
        raise SourceError(
            f"{what} is {type(value).__name__}; wanted a numpy.ndarray, a torch.Tensor or an HTensor"
        )
    tensor = cast("TorchTensor", value).detach().cpu().contiguous()
    if getattr(tensor, "dtype", None) is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(DATATYPES[BF16].dtype)
    return tensor.numpy()


@dataclass(frozen=True, slots=True)
class Container:
    """What a call's data came in, and its results go out in.

    Parameters
    ----------
    torch : bool
        Whether these are torch's tensors.
    device : object
        Torch's, where they are.
    """

    torch: bool = False
    device: object = None

    def of(self, array: Array) -> Data:
        """Return an array in this container.

        Parameters
        ----------
        array : ndarray
            Nobody else's.

        Returns
        -------
        ndarray or torch.Tensor
            A BYTES tensor stays an array: torch has no texts.
        """
        torch = _torch()
        if not self.torch or torch is None or array.dtype.kind == "O":
            return array
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(array).to(self.device)


def container_of(data: Mapping[str, object], kept: Iterable[Container] = ()) -> Container:
    """Tell what a call's data is in.

    Parameters
    ----------
    data : mapping of str to ndarray or torch.Tensor
        What was handed in, without what has no data here.
    kept : iterable of Container
        Of what was handed in without data: they settle it where nothing has any.

    Returns
    -------
    Container
        NumPy's where nothing settles it.

    Raises
    ------
    SourceError
        If it is mixed, or on several devices.
    """
    torchs = {name: value for name, value in data.items() if is_torch(value)}
    if not torchs:
        known = set(kept) if not data else set()
        return known.pop() if len(known) == 1 else Container()
    if len(torchs) < len(data):
        others = sorted(data.keys() - torchs.keys())
        raise SourceError(
            f"the data is mixed: {', '.join(sorted(torchs))} of torch, {', '.join(others)} of NumPy; "
            "hand in one kind"
        )
    devices = {name: str(cast("TorchTensor", value).device) for name, value in torchs.items()}
    if len(set(devices.values())) > 1:
        shown = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise SourceError(f"the data is on several devices: {shown}; move it to one")
    return Container(True, cast("TorchTensor", next(iter(torchs.values()))).device)
