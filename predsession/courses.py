"""From what the caller handed in to a course: images, clips, or ids, checked as far as needs no server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from predsession.errors import SourceError
from predsession.inputs.folders import names_clips
from predsession.inputs.frames import FrameOptions, read_options
from predsession.inputs.sources import open_source
from predsession.jobs.attachment import Attachment
from predsession.jobs.images import ImageCourse
from predsession.jobs.pipeline import Course
from predsession.jobs.shared import Shared
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.submits import IdOptions, IdTarget, images_by_id, project_by_id, video_by_id

MODES = ("append", "replace", "create", "iou_merge")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session is to do, checked.

    Parameters
    ----------
    description : str
        The source, in a few words.
    make : callable
        Makes the course of what its threads share, the server's URL and its token.
    """

    description: str
    make: Callable[[Shared, str, str | None], Course]
    not_kept: str = ""
    """Why a journal is of no use to it; empty where it is."""


def plan(
    sources: Mapping[str, object],
    *,
    frames: Mapping[str, object],
    id_options: Mapping[str, object],
    recursive: bool,
    tracking: JSONObject | None,
    project_of: Callable[[int], int],
) -> Plan:
    """Decide what is run.

    Parameters
    ----------
    sources : mapping
        The source keyword that was given, and its value: exactly one that is not None.
    frames, id_options : mapping
        The keywords that choose frames, and those for ids; None values count as not given.
    recursive : bool
        For folders.
    tracking : mapping or None
        The tracking configuration; None not to track.
    project_of : callable
        Dataset id to project id.

    Returns
    -------
    Plan
        Ready to be made into a course.

    Raises
    ------
    SourceError
        If the source is no good, or options do not go with it.
    """
    name, value = next((name, value) for name, value in sources.items() if value is not None)
    options = read_options(frames)
    kind = name.removesuffix("s").removesuffix("_id")
    extra = _id_options(id_options)
    if kind == "input":
        _refuse("ids", "an input", id_options)
        return _plan_input(value, options, frames, recursive=recursive, tracking=tracking)
    if kind == "video":
        _refuse("images, datasets and projects", f"{name}=", id_options)
    else:
        _refuse("videos", f"{name}=", frames)
        _refuse_tracking(tracking, f"{name}=")
    target = _target(kind, _ids(name, value), options, extra, project_of)
    from predsession.jobs.records import IdCourse

    return Plan(
        target.description,
        lambda shared, endpoint, token: IdCourse(
            shared, target, tracking=tracking, endpoint=endpoint, token=token
        ),
        ""
        if target.images is not None
        else f"what belongs to {name}= is known only to the server, or is written there",
    )


def _plan_clips(value: object, options: FrameOptions, tracking: JSONObject | None) -> Plan:
    """Plan one clip, or several."""
    from predsession.inputs.clips import open_clips
    from predsession.jobs.clips import ClipCourse

    clips = open_clips(value, options)
    return Plan(clips.description, lambda shared, *_: ClipCourse(shared, clips, tracking))


def _plan_attachment(target: Attachment) -> Plan:
    """Plan to go on with jobs that are there already."""
    from predsession.jobs.attached import AttachedCourse

    return Plan(
        target.description,
        lambda shared, endpoint, token: AttachedCourse(shared, target, endpoint=endpoint, token=token),
        "the jobs belong to another run",
    )


def _plan_input(
    value: object,
    options: FrameOptions,
    frames: Mapping[str, object],
    *,
    recursive: bool,
    tracking: JSONObject | None,
) -> Plan:
    """Plan a source that is sent from here."""
    # What a source has no use for is imported by none: starting should not cost more than the work.
    if names_clips(value):
        return _plan_clips(value, options, tracking)
    if isinstance(value, Attachment):
        return _plan_attachment(value)
    _refuse("videos", "images", frames)
    _refuse_tracking(tracking, "images")
    if isinstance(value, Iterator):
        from predsession.inputs.lazy import LazySource

        lazy = LazySource(value)
        return Plan(lazy.description, lambda shared, *_: ImageCourse(shared, lazy))
    items = open_source(value, recursive=recursive)
    return Plan(items.description, lambda shared, *_: ImageCourse(shared, items))


def _refuse(owner: str, source: str, given: Mapping[str, object]) -> None:
    """Refuse keywords that do not go with the source."""
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise SourceError(
            f"{', '.join(named)} {'is' if len(named) == 1 else 'are'} for {owner}, not for {source}"
        )


def _refuse_tracking(tracking: JSONObject | None, source: str) -> None:
    """Refuse to track what is no video: servers track only videos, and ids that mean nothing would result."""
    if tracking is not None:
        raise SourceError(
            f"tracking= needs a video, not {source}: servers track only videos. Write frames into a clip "
            "first, for example with predsession.inputs.video.ClipWriter."
        )


def _id_options(given: Mapping[str, object]) -> IdOptions:
    """Check the options for ids."""
    values = dict(given)
    cached = [values.pop(name, None) for name in ("cache_project_on_model", "cache_datasets_on_model")]
    mode, threshold = values.get("upload_mode"), values.get("iou_merge_threshold")
    if mode is not None and mode not in MODES:
        raise SourceError(f"upload_mode must be one of {', '.join(MODES)}, not {mode!r}")
    if threshold is not None and mode != "iou_merge":
        raise SourceError("iou_merge_threshold= goes with upload_mode='iou_merge'")
    if threshold is not None and not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise SourceError(f"iou_merge_threshold must be a number from 0 to 1, not {threshold!r}")
    if mode == "create" and values.get("output_project_id") is not None:
        raise SourceError("upload_mode='create' makes a project of its own: leave out output_project_id=")
    project = values.get("output_project_id")
    if project is not None and not _is_id(project):
        raise SourceError(f"output_project_id must be an id, not {project!r}")
    suffix = values.get("model_prediction_suffix")
    return IdOptions(
        upload_mode=None if mode is None else str(mode),
        iou_merge_threshold=None if threshold is None else float(str(threshold)),
        output_project_id=project if isinstance(project, int) else None,
        cache_project_on_model=next((bool(one) for one in cached if one is not None), None),
        model_prediction_suffix=None if suffix is None else str(suffix),
    )


def _ids(name: str, value: object) -> list[int]:
    """Return the ids as a list."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    given = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    ids = [one.item() if isinstance(one, np.generic) else one for one in given]
    bad = [one for one in ids if not _is_id(one)]
    if bad or not ids:
        raise SourceError(f"{name}= takes an id or a list of ids, not {bad[0] if bad else value!r}")
    return [int(str(one)) for one in ids]


def _is_id(value: object) -> bool:
    """Whether a value can be an id."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _target(
    kind: str,
    ids: list[int],
    options: FrameOptions,
    extra: IdOptions,
    project_of: Callable[[int], int],
) -> IdTarget:
    """Make the target for ids."""
    if kind == "image":
        return images_by_id(ids, extra)
    if kind == "dataset":
        projects = {project_of(one) for one in ids}
        if len(projects) > 1:
            raise SourceError(f"datasets of one project at a time, not of {sorted(projects)}")
        return project_by_id(projects.pop(), ids, extra)
    if len(ids) > 1:
        raise SourceError(f"one {kind} at a time, not {len(ids)}; run a session for each")
    if kind == "project":
        return project_by_id(ids[0], None, extra)
    return video_by_id(ids[0], _frame_state(options))


def _frame_state(options: FrameOptions) -> dict[str, JSON]:
    """Return the frame options in the names that servers read for ids (the end is exclusive here)."""
    state: dict[str, JSON] = {
        "start_frame": options.start_frame,
        "num_frames": options.num_frames,
        "end_frame": options.end_frame,
        "duration": options.duration,
        "stride": None if options.stride == 1 else options.stride,
        "direction": None if options.direction == "forward" else options.direction,
    }
    return {name: value for name, value in state.items() if value is not None}
