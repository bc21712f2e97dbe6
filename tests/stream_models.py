"""Models of tensors for streams: with an axis for samples, without one, and with one that has no room."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np


class Many:
    """Rows at once."""

    inputs: ClassVar[dict[str, Any]] = {"x": ("FP32", [-1, 3])}
    outputs: ClassVar[dict[str, Any]] = {"twice": ("FP32", [-1, 3]), "rows": ("INT64", [-1])}

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Double."""
        x = inputs["x"]
        return {"twice": x * 2, "rows": np.full(len(x), len(x), np.int64)}


class Single:
    """One sample, without an axis for others."""

    inputs: ClassVar[dict[str, Any]] = {"x": ("FP32", [3])}
    outputs: ClassVar[dict[str, Any]] = {"twice": ("FP32", [3])}

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Double; three of a kind it does not like."""
        if inputs["x"][0] == 4:
            raise ValueError("no fours")
        return {"twice": inputs["x"] * 2}


class First:
    """An axis for samples, and room for one, as exported networks often have it."""

    inputs: ClassVar[dict[str, Any]] = {"x": ("FP32", [1, 3])}
    outputs: ClassVar[dict[str, Any]] = {"twice": ("FP32", [1, 3])}

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Double."""
        assert inputs["x"].shape == (1, 3)
        return {"twice": inputs["x"] * 2}
