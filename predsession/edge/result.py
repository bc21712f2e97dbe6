"""What comes back for one picture, and one entry of a batch.

Invariant: a result that failed gives nothing but its error: whoever asks it for objects gets that raised, so
that "no objects" always means that the model found none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from predsession.errors import PredSessionError
from predsession.wire.edge.parts import (
    Classification,
    DepthMap,
    DetectedObject,
    Embedding,
    LandmarkSet,
    OcrLine,
    Parts,
    SegmentationMask,
)

if TYPE_CHECKING:
    from predsession.prediction import Prediction

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, eq=False)
class BatchInferItem:
    """One picture of a batch, with the model that is to see it.

    Parameters
    ----------
    image : (H, W, 3) uint8 array-like
        RGB; other shapes and dtypes go as they are.
    model_id : str
        Which model.
    timeout_ms : int
        Milliseconds, as the wire has them.
    priority : int
        0 to 7, 7 first.
    """

    image: npt.ArrayLike = field(repr=False)
    model_id: str
    timeout_ms: int = 5000
    priority: int = 4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class InferenceResult:
    """What a model found in one picture. It is false if it failed.

    Parameters
    ----------
    parts : Parts
        What was found.
    raw_outputs : list of ndarray, or None
        The model's own outputs, read-only; None where the runtime sent none.
    infer_time_us, queue_time_us, hw_infer_time_us : int
        Microseconds, as the wire has them: all of it, waiting, on the device.
    frame_sequence : int
        Of a subscription: the frame's number.
    timestamp_ns : int
        Of a subscription: nanoseconds, on the camera's clock.
    skew_us : int
        Of a subscription: microseconds between frame and result, where the runtime measures it.
    status_message : str
        The runtime's words.
    error : PredSessionError or None
        Why it failed.
    """

    parts: Parts = field(default=Parts(), repr=False)
    raw_outputs: list[Array] | None = field(default=None, repr=False)
    infer_time_us: int = 0
    queue_time_us: int = 0
    hw_infer_time_us: int = 0
    frame_sequence: int = 0
    timestamp_ns: int = 0
    skew_us: int = 0
    status_message: str = ""
    error: PredSessionError | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.error is None

    def __bool__(self) -> bool:
        """Return whether there is a result."""
        return self.error is None

    def raise_for_status(self) -> None:
        """Raise the error if it failed."""
        if self.error is not None:
            raise self.error

    def _found(self) -> Parts:
        """Return what was found, or raise why nothing was looked for."""
        self.raise_for_status()
        return self.parts

    @property
    def objects(self) -> tuple[DetectedObject, ...]:
        """The objects, in the runtime's order."""
        return self._found().objects

    @property
    def classifications(self) -> tuple[Classification, ...]:
        """The classes of the picture as a whole."""
        return self._found().classifications

    @property
    def landmarks(self) -> tuple[LandmarkSet, ...]:
        """Points of faces, hands and bodies."""
        return self._found().landmarks

    @property
    def masks(self) -> tuple[SegmentationMask, ...]:
        """The pixels of each class, or of each object."""
        return self._found().masks

    @property
    def ocr_lines(self) -> tuple[OcrLine, ...]:
        """Lines of text."""
        return self._found().ocr_lines

    @property
    def embeddings(self) -> tuple[Embedding, ...]:
        """Vectors."""
        return self._found().embeddings

    @property
    def depth_maps(self) -> tuple[DepthMap, ...]:
        """Distances in metres."""
        return self._found().depth_maps

    def has_person(self) -> bool:
        """Return whether an object is a person.

        Returns
        -------
        bool
            Whether one has the label "person", in any case of letters.
        """
        return any(each.label.lower() == "person" for each in self.objects)

    def count_by_label(self, label: str) -> int:
        """Count the objects of one label.

        Parameters
        ----------
        label : str
            The label, as it is.

        Returns
        -------
        int
            How many.
        """
        return len(self.get_objects_by_label(label))

    def get_objects_by_label(self, label: str) -> list[DetectedObject]:
        """Pick the objects of one label.

        Parameters
        ----------
        label : str
            The label, as it is.

        Returns
        -------
        list of DetectedObject
            In the runtime's order.
        """
        return [each for each in self.objects if each.label == label]

    def to_prediction(
        self,
        width: int | None = None,
        height: int | None = None,
        *,
        image: npt.ArrayLike | None = None,
        index: int = 0,
        name: str = "",
        path: str | PathLike[str] | None = None,
    ) -> Prediction:
        """Return the same as a `Prediction`, to be drawn and exported like any other.

        Objects, masks, landmarks and lines of text become objects, in this order. Masks with the boxes of the
        objects, and landmarks that are as many as those, belong to them. Classes of the picture become tags
        (of two with one label, the surer), text and vectors ``data``; depth maps are left out.

        Parameters
        ----------
        width, height : int or None
            The picture's; not needed with `image`.
        image : (H, W, 3) uint8 array-like or None
            The picture, RGB.
        index : int
            Its position in its source.
        name : str
            Its name.
        path : str, PathLike or None
            Its path.

        Returns
        -------
        Prediction
            Boxes in pixels; masks at the picture's size.

        Raises
        ------
        ValueError
            If the size is missing or contradicts the image.
        ProtocolError
            If a box, a point or a vector is not finite, one is far away, or a mask's code is damaged.
        """
        from predsession.edge.conversion import to_prediction

        size = None if width is None or height is None else (width, height)
        return to_prediction(
            self._found(),
            size,
            image=image,
            index=index,
            name=name,
            path=path,
            frame_index=self.frame_sequence if self.timestamp_ns else None,
        )
