"""One batch through a model: pixels in, the wire's items out. Runs in a worker process."""

from __future__ import annotations

import copy
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from predsession.server.decode import Pixels
from predsession.server.detections import pack
from predsession.server.models.base import Model
from predsession.server.models.card import ModelCard
from predsession.server.models.results import Found, check, check_count
from predsession.server.settings import CONF_NAMES
from predsession.wire.annotation import annotation_from_arrays
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSON, JSONObject

_WORDLESS: Mapping[type[BaseException], str] = {MemoryError: "out of memory"}
"""What is said for exceptions that say nothing themselves."""
Write = Callable[[Found, Size], bytes]
_TRACEBACK = 4000  # characters; the end of it is what helps

ITEM: Mapping[str, JSON] = {
    "name": None,
    "path": None,
    "url": None,
    "project_id": None,
    "dataset_id": None,
    "image_id": None,
    "video_id": None,
    "frame_index": None,
    "slides_data": {},
    "data": {},
}
"""What follows the annotation in an item: a worker knows none of it."""
_ITEM_TAIL = json.dumps(ITEM, separators=(",", ":"))[1:]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one picture: an item's JSON, or an error.

    Parameters
    ----------
    item : bytes
        The wire's JSON, empty for an error.
    error : JSONObject or None
        ``type``, ``message`` and ``traceback``.
    rows : bytes
        For a tracker: every detection, also those that are too weak for the item (`tracking.pack`).
    """

    item: bytes = b""
    error: JSONObject | None = None
    rows: bytes = b""


def describe_error(error: BaseException, blamed: str = "") -> JSONObject:
    """Return an exception as the wire's object.

    Parameters
    ----------
    error : BaseException
        What was raised.
    blamed : str
        The model that is named in the message.

    Returns
    -------
    dict
        ``type``, ``message`` and ``traceback``.
    """
    lines = "".join(traceback.format_exception(error))
    text = str(error) or _WORDLESS.get(type(error), type(error).__name__)
    message = f"model {blamed}: {text}" if blamed else text
    return {"type": type(error).__name__, "message": message, "traceback": lines[-_TRACEBACK:]}


class Inference:
    """A loaded model and what is done around each of its batches.

    Parameters
    ----------
    model : Model
        Loaded.
    card : ModelCard
        Its description.
    name : str
        What it is called in errors; empty where they go out as the model raised them.
    float_boxes : bool
        Whether objects carry their boxes as floats too.
    """

    def __init__(self, model: Model, card: ModelCard, *, name: str, float_boxes: bool) -> None:
        self._name = name
        self._model = model
        self._card = card
        self._float_boxes = float_boxes

    def run(
        self, images: Sequence[Pixels], settings: JSONObject, *, singly: bool, low: float | None = None
    ) -> list[Outcome]:
        """Predict, check and write down.

        Parameters
        ----------
        images : sequence of (H, W, 3) uint8 ndarray
            RGB.
        settings : mapping
            The model's, complete.
        singly : bool
            Whether a batch that fails is tried again picture by picture, so that the others get their answer.
        low : float or None
            For a tracker: the lowest score of a detection that it wants to know of.

        Returns
        -------
        list of Outcome
            One for each picture.
        """
        asked = settings if low is None else self._lowered(settings, low)
        write = partial(self._write, settings=settings, tracked=low is not None)
        return self._each(images, asked, [write] * len(images), singly=singly)

    def shoot(
        self, images: Sequence[Pixels], settings: JSONObject, writes: Sequence[Write], *, singly: bool
    ) -> list[Outcome]:
        """Predict and check, and have somebody else write it down.

        Parameters
        ----------
        images : sequence of (H, W, 3) uint8 ndarray
            RGB.
        settings : mapping
            The model's, complete.
        writes : sequence of callable
            For each picture: what was found and the picture's size, to bytes.
        singly : bool
            Whether a batch that fails is tried again picture by picture.

        Returns
        -------
        list of Outcome
            One for each picture.
        """
        made = [partial(self._hand_over, settings=settings, write=write) for write in writes]
        return self._each(images, settings, made, singly=singly)

    def _each(
        self,
        images: Sequence[Pixels],
        settings: JSONObject,
        writes: Sequence[Callable[[object, Pixels], Outcome]],
        *,
        singly: bool,
    ) -> list[Outcome]:
        """Predict, and write down each result."""
        try:
            # A copy, so that a model that changes its settings does not change those of the next try.
            answers = self._model.predict(list(images), copy.deepcopy(settings))
            results = check_count(answers, len(images))
        except Exception as error:  # noqa: BLE001 - a model is somebody's code and raises anything
            if singly and len(images) > 1:
                return [
                    self._each([image], settings, [write], singly=False)[0]
                    for image, write in zip(images, writes, strict=True)
                ]
            return [Outcome(error=describe_error(error, self._name))] * len(images)
        return [write(result, image) for result, image, write in zip(results, images, writes, strict=True)]

    def _hand_over(self, result: object, image: Pixels, settings: JSONObject, write: Write) -> Outcome:
        """Check one result and have it written."""
        try:
            size = Size(image.shape[1], image.shape[0])
            found = check(result, size, self._card)
            keep = self._strong(found, settings) & self._of_classes(found, settings)
            return Outcome(item=write(found if keep.all() else found.rows(keep), size))
        except Exception as error:  # noqa: BLE001 - as above
            return Outcome(error=describe_error(error, self._name))

    def _lowered(self, settings: JSONObject, low: float) -> JSONObject:
        """Let weak detections through: they keep a track alive where its object is half hidden."""
        name, conf = self._conf(settings)
        return settings if conf is None else {**settings, name: min(conf, low)}

    def _write(self, result: object, image: Pixels, settings: JSONObject, tracked: bool) -> Outcome:
        """Check one result and write its item."""
        try:
            size = Size(image.shape[1], image.shape[0])
            found = check(result, size, self._card)
            strong, wanted = self._strong(found, settings), self._of_classes(found, settings)
            rows = pack(found, strong & wanted, keep=wanted) if tracked else b""
            keep = strong & wanted
            return Outcome(item=self._item(found if keep.all() else found.rows(keep), size), rows=rows)
        except Exception as error:  # noqa: BLE001 - as above
            return Outcome(error=describe_error(error, self._name))

    def _strong(self, found: Found, settings: JSONObject) -> npt.NDArray[np.bool_]:
        """Mark the rows that reach ``conf``, a setting of every model."""
        _, conf = self._conf(settings)
        return np.ones(len(found.boxes), np.bool_) if conf is None else np.asarray(found.scores >= conf)

    def _conf(self, settings: JSONObject) -> tuple[str, float | None]:
        """Return the lowest score, and its name; a model of masks may mean something else by it."""
        name = next((name for name in CONF_NAMES if name in settings), "conf")
        value = settings.get(name)
        known = self._card.shape == "rectangle" and isinstance(value, (int, float))
        return name, float(str(value)) if known else None

    def _of_classes(self, found: Found, settings: JSONObject) -> npt.NDArray[np.bool_]:
        """Mark the rows of the wanted ``classes``, likewise."""
        classes = settings.get("classes")
        if isinstance(classes, Sequence) and not isinstance(classes, str):
            ids = [number for number, name in enumerate(self._card.classes) if name in classes]
            return np.isin(found.class_ids, ids)
        return np.ones(len(found.boxes), np.bool_)

    def _item(self, found: Found, size: Size) -> bytes:
        """Write the item as the wire's JSON."""
        annotation = annotation_from_arrays(
            size,
            boxes=found.boxes,
            class_names=[self._card.classes[number] for number in found.class_ids],
            scores=found.scores,
            masks=found.masks,
            keypoints=found.keypoints,
            node_ids=self._card.keypoints,
            tags=found.tags,
            float_boxes=self._float_boxes,
        )
        text = json.dumps(annotation, separators=(",", ":"))
        return f'{{"source":null,"annotation":{text},{_ITEM_TAIL}'.encode()
