"""Shots in the worker: pixels as they came over the pipe, answers as messages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from predsession.server.decode import Pixels
from predsession.server.inference import Inference, Write
from predsession.server.models.card import ModelCard
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object


@dataclass(frozen=True, slots=True)
class ShotOrder:
    """Shots that wait for the model, as `predsession.server.shots` sent them.

    Parameters
    ----------
    id : int
        What the server calls the batch.
    images : list of (H, W, 3) uint8 ndarray
        RGB; a model may write to them.
    forms : list of JSONObject
        What each message is to hold.
    settings : JSONObject
        The model's, complete.
    singly : bool
        Whether a batch that fails is tried again picture by picture.
    """

    id: int
    images: list[Pixels]
    forms: list[JSONObject]
    settings: JSONObject
    singly: bool

    @classmethod
    def read(cls, header: JSONObject, body: bytearray) -> ShotOrder:
        """Read a frame."""
        images: list[Pixels] = []
        forms: list[JSONObject] = []
        begin = 0
        for shot in as_list(header["shots"]):
            width, height, form = as_list(shot)
            shape = int(str(height)), int(str(width)), 3
            count = shape[0] * shape[1] * 3
            images.append(np.frombuffer(body, np.uint8, count, begin).reshape(shape))
            forms.append(as_object(form))
            begin += count
        settings = as_object(header["settings"])
        return cls(int(str(header["id"])), images, forms, settings, bool(header["singly"]))


def answer(order: ShotOrder, inference: Inference, card: ModelCard) -> tuple[JSONObject, bytes]:
    """Run one batch of shots.

    Parameters
    ----------
    order : ShotOrder
        The batch.
    inference : Inference
        The model.
    card : ModelCard
        Its description.

    Returns
    -------
    tuple
        Header and body of the frame that says what became of it.
    """
    began = time.perf_counter()
    writes = [_write(form, card) for form in order.forms]
    outcomes = inference.shoot(order.images, order.settings, writes, singly=order.singly)
    header: dict[str, JSON] = {
        "op": "done",
        "id": order.id,
        "sizes": [len(outcome.item) for outcome in outcomes],
        "errors": [outcome.error for outcome in outcomes],
        "model_s": time.perf_counter() - began,
    }
    return header, b"".join(outcome.item for outcome in outcomes)


def _write(form: JSONObject, card: ModelCard) -> Write:
    """Return what writes an answer in the form that was asked for."""
    if form.get("arrays"):
        from predsession.server.oip.answer import write_arrays

        return partial(write_arrays, card=card)
    # Its messages need an extra, which a server without this door does without.
    from predsession.server.edge.answer import write_answer

    return partial(write_answer, card=card, form=form)
