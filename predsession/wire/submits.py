"""Every call that starts a job: what is run, how, and what becomes of it.

References: docs/protocol.md. The keys are Supervisely 6.74.51's; ``item_errors``, ``session`` and
``first_index`` are the extension's, and a stock server ignores them, as it does the header
``Idempotency-Key``, which names a logical submit: a server with ``idempotency`` starts one job a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from predsession.wire.calls import Call, Repeat
from predsession.wire.jsontypes import JSON, JSONObject


def submit_images(options: SubmitOptions, *, key: str, indexes: Sequence[int], idempotent: bool) -> Call:
    """Start a job on the images that are sent along.

    Parameters
    ----------
    options : SubmitOptions
        What all submits of a session have in common.
    key : str
        Names this logical submit; a server with ``idempotency`` starts one job a key.
    indexes : sequence of int
        Position in the source of each image (extension ``list``).
    idempotent : bool
        Whether the server has ``idempotency``.

    Returns
    -------
    Call
        To be sent with the files. A stock server ignores the header and the additional keys.
    """
    state: dict[str, JSON] = {"settings": dict(options.settings), "item_errors": True}
    state.update(session=options.session, first_index=indexes[0])
    if list(indexes) != list(range(indexes[0], indexes[0] + len(indexes))):
        state["indexes"] = list(indexes)
    if options.batch_size is not None:
        state["batch_size"] = options.batch_size
    repeat = Repeat.KEYED if idempotent else Repeat.REFUSED
    return Call("inference_batch_async", state, repeat, {"Idempotency-Key": key})


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """What all submits of a session have in common.

    Parameters
    ----------
    session : str
        The session's id (extension ``list``).
    settings : mapping
        The model's settings.
    batch_size : int or None
        Images the model takes at once; None leaves it to the server.
    """

    session: str
    settings: JSONObject
    batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class Tracking:
    """How a clip is tracked.

    Parameters
    ----------
    tracker : str
        One of the names in the server's ``tracking_algorithms``.
    settings : mapping
        The tracker's own.
    """

    tracker: str
    settings: JSONObject = field(default_factory=dict)


def submit_video(
    options: SubmitOptions,
    frames: range | None,
    *,
    stride: int = 1,
    tracking: Tracking | None = None,
    first_index: int | None = None,
    key: str,
    idempotent: bool,
) -> Call:
    """Start a job on the clip that is sent along.

    Parameters
    ----------
    options : SubmitOptions
        What all submits of a session have in common.
    frames : range or None
        The frames, in the order in which they are to be predicted; None for all, where their number is not
        known here.
    stride : int
        Of all, where `frames` is None.
    tracking : Tracking or None
        How to track, if at all.
    first_index : int or None
        Position in the source of the first frame (extension ``list``), where that is known.
    key, idempotent
        As for `submit_images`.

    Returns
    -------
    Call
        To be sent with the one file. Names are camelCase: a stock server ignores snake_case for uploads.
        Start and count are always given: without them it asks for frames beyond the end.
    """
    state: dict[str, JSON] = {"settings": dict(options.settings), "item_errors": True}
    state["session"] = options.session
    if frames is None:
        state["stride"] = stride
    else:
        state.update(_frame_keys(frames))
    if options.batch_size is not None:
        state["batch_size"] = options.batch_size
    if first_index is not None:
        state["first_index"] = first_index
    if tracking is not None:
        state.update(tracker=tracking.tracker, tracker_settings=dict(tracking.settings))
    repeat = Repeat.KEYED if idempotent else Repeat.REFUSED
    return Call("inference_video_async", state, repeat, {"Idempotency-Key": key})


@dataclass(frozen=True, slots=True)
class IdOptions:
    """What a job by ids does beside predicting.

    Parameters
    ----------
    upload_mode : str or None
        ``append``, ``replace``, ``create`` or ``iou_merge``: how the predictions are written back.
    iou_merge_threshold : float or None
        For ``iou_merge``: a prediction that overlaps a present object of its class by more is left out.
    output_project_id : int or None
        Where they are written.
    cache_project_on_model : bool or None
        Whether the server fetches the whole project first.
    model_prediction_suffix : str or None
        Added to class names that clash with others of the project.
    """

    upload_mode: str | None = None
    iou_merge_threshold: float | None = None
    output_project_id: int | None = None
    cache_project_on_model: bool | None = None
    model_prediction_suffix: str | None = None

    @property
    def writes(self) -> bool:
        """Whether the job changes something on the server, so that running it again is no answer."""
        return self.upload_mode is not None or self.output_project_id is not None


@dataclass(frozen=True, slots=True)
class IdTarget:
    """What is run by ids; made by `images_by_id`, `project_by_id` or `video_by_id`.

    Parameters
    ----------
    endpoint : str
        The submit's.
    description : str
        In a few words.
    state : mapping
        What names it.
    extra : IdOptions
        What the job does beside predicting.
    images : tuple of int or None
        The images, where each result tells its own and the missing ones may be run again.
    """

    endpoint: str
    description: str
    state: JSONObject
    extra: IdOptions = field(default_factory=IdOptions)
    images: tuple[int, ...] | None = None


def images_by_id(ids: Sequence[int], extra: IdOptions) -> IdTarget:
    """Return the target for images that the server knows."""
    name = f"image {ids[0]}" if len(ids) == 1 else f"{len(ids)} images by id"
    again = None if extra.writes else tuple(ids)
    return IdTarget("inference_batch_ids_async", name, {"images_ids": list(ids)}, extra, again)


def project_by_id(project: int, datasets: Sequence[int] | None, extra: IdOptions) -> IdTarget:
    """Return the target for a project that the server knows, or for some of its datasets."""
    state: dict[str, JSON] = {"project_id": project}
    name = f"project {project}"
    if datasets is not None:
        state["dataset_ids"] = list(datasets)
        name = f"{len(datasets)} datasets of {name}"
    return IdTarget("inference_project_id_async", name, state, extra)


def video_by_id(video: int, frames: JSONObject) -> IdTarget:
    """Return the target for a video that the server knows; for ids, servers read snake_case names, too."""
    return IdTarget("inference_video_id_async", f"video {video}", {"video_id": video, **frames})


def submit_ids(
    options: SubmitOptions, target: IdTarget, *, tracking: Tracking | None, key: str, idempotent: bool
) -> Call:
    """Start a job by ids: JSON, with the token in its body, by which a platform's server resolves them."""
    state: dict[str, JSON] = {"settings": dict(options.settings), "item_errors": True, **target.state}
    state["session"] = options.session
    extra = {name: getattr(target.extra, name) for name in IdOptions.__slots__}
    state.update({name: value for name, value in extra.items() if value is not None})
    if options.batch_size is not None:
        state["batch_size"] = options.batch_size
    if tracking is not None:
        state.update(tracker=tracking.tracker, tracker_settings=dict(tracking.settings))
    repeat = Repeat.KEYED if idempotent else Repeat.REFUSED
    return Call(target.endpoint, state, repeat, {"Idempotency-Key": key}, token_in_body=True)


def _frame_keys(frames: range) -> dict[str, JSON]:
    """Return a range as the wire says it: the count is of the clip's frames, before the stride."""
    return {
        "startFrameIndex": frames[0],
        "framesCount": abs(frames[-1] - frames[0]) + 1,
        "stride": abs(frames.step),
        "direction": "backward" if frames.step < 0 else "forward",
    }
