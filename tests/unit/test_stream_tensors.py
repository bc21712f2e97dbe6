"""Tensors in batches and in results, as torch has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_kit import ids

from predsession.errors import (
    StoreError,
)
from predsession.stream import StreamSession


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where results go: the quicker kind."""
    return tmp_path / "results.parquet"


class Tensor:
    """What of a tensor of torch's is used: on a device, and not to be made an array of with its gradient."""

    def __init__(self, array: Any, *, here: bool = False) -> None:
        self._array, self._here = np.asarray(array), here
        self.ndim = self._array.ndim

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: Any) -> Tensor:
        return Tensor(self._array[place], here=self._here)

    def __array__(self, *_: object, **__: object) -> Any:
        if not self._here:
            raise TypeError("on a device")
        if self._array.dtype == np.float16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def detach(self) -> Tensor:
        """Let go of the gradient."""
        return self

    def cpu(self) -> Tensor:
        """Fetch."""
        return Tensor(self._array, here=True)


def test_tensors(store: Path) -> None:
    """Batches by hand may hold tensors; a model may return them, and process() gives NumPy's."""
    seen = []

    def model(batch: Any) -> Any:
        seen.append(batch["x"])
        return {"y": batch["x"]}

    with StreamSession(model, store=store) as session:
        for names in (["a", "b"], ["b", "c"]):
            results = session.process({"object_id": names, "x": Tensor(np.ones((2, 3), np.float32))})
            assert isinstance(results, dict)
            assert isinstance(results["y"], np.ndarray)
        assert all(isinstance(each, Tensor) for each in seen)
        assert [len(each) for each in seen] == [2, 1]
        with pytest.raises(StoreError, match="makes no array: Got unsupported ScalarType BFloat16"):
            session.process({"object_id": ["d"], "x": Tensor(np.ones((1, 3), np.float16))})
    assert ids(store) == ["a", "b", "c"]
