"""What a model's tensors are, in the words of hbm_infer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from predsession.wire.oip.datatypes import DATATYPES
from predsession.wire.oip.facts import Quantization, TensorFacts


class TensorInfo(Mapping[str, object]):
    """An input or an output: a mapping, as hbm_infer has it.

    Parameters
    ----------
    facts : TensorFacts
        What the server says.
    quantization : Quantization or None
        What its model's configuration says.

    Notes
    -----
    ``valid_shape`` is a list, -1 where any size will do; ``tensor_type`` is "DATA_TYPE_F32" and the like;
    ``quanti_type`` is "QUANTI_TYPE_NONE", or "QUANTI_TYPE_SCALE" with ``quantizeAxis`` (-1 for one scale of
    the whole tensor), ``scale_data`` and ``zero_point_data`` beside it.
    """

    def __init__(self, facts: TensorFacts, quantization: Quantization | None = None) -> None:
        self.name: str = facts.name
        self.datatype: str = facts.datatype
        self.quantization = quantization
        kind = DATATYPES.get(facts.datatype)
        self._fields: dict[str, object] = {
            "valid_shape": list(facts.shape),
            "tensor_type": kind.tensor_type if kind is not None else facts.datatype,
            "quanti_type": "QUANTI_TYPE_NONE" if quantization is None else "QUANTI_TYPE_SCALE",
        }
        if quantization is not None:
            self._fields["quantizeAxis"] = -1 if quantization.axis is None else quantization.axis
            self._fields["scale_data"] = list(quantization.scale)
            self._fields["zero_point_data"] = list(quantization.zero_point)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds it; raises `KeyError` for a datatype that the protocol does not have."""
        return DATATYPES[self.datatype].dtype

    def __getitem__(self, key: str) -> object:
        """Return a field."""
        return self._fields[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the fields' names."""
        return iter(self._fields)

    def __len__(self) -> int:
        """Return how many fields there are."""
        return len(self._fields)

    def __repr__(self) -> str:
        """Return the fields."""
        return f"TensorInfo({self.name!r}, {self._fields!r})"


def table(rows: Mapping[str, TensorInfo], title: str) -> list[str]:
    """Return lines that show tensors.

    Parameters
    ----------
    rows : mapping of str to TensorInfo
        By name.
    title : str
        Above the names.

    Returns
    -------
    list of str
        In columns.
    """
    cells = [(title, "valid_shape", "tensor_type", "quanti_type", "scales")]
    for name, info in rows.items():
        found = info.quantization
        scales = (
            ""
            if found is None
            else f"{len(found.scale)}, axis {found.axis}"
            if found.axis is not None
            else (f"{found.scale[0]:g}, zero point {found.zero_point[0]}")
        )
        cells.append(
            (name, str(info["valid_shape"]), str(info["tensor_type"]), str(info["quanti_type"]), scales)
        )
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
