"""What a submit by ids asks for: which items, and what becomes of the predictions; checked."""

from __future__ import annotations

from collections.abc import Sequence

from predsession.server.library import Library, Record
from predsession.server.refusal import Refusal, explained
from predsession.server.work import WriteWork
from predsession.server.writing import MODES
from predsession.wire.jsontypes import JSON, JSONObject

_IMAGES = ("images_ids", "image_ids", "batch_ids", "imageIds", "image_id", "imageId")
_THRESHOLD = 0.9
"""What a Supervisely server takes where nothing is said."""


def image_ids(state: JSONObject) -> list[int]:
    """Return the images that a submit names.

    Parameters
    ----------
    state : JSONObject
        The submit's.

    Returns
    -------
    list of int
        In order; at least one.

    Raises
    ------
    Refusal
        If there are none, or one is no id.
    """
    name = next((name for name in _IMAGES if state.get(name) is not None), _IMAGES[0])
    return ids(state, name)


def ids(state: JSONObject, *names: str) -> list[int]:
    """Return the ids under the first of these keys that is there; one alone counts as a list.

    Parameters
    ----------
    state : JSONObject
        The submit's.
    *names : str
        Keys.

    Returns
    -------
    list of int
        At least one.

    Raises
    ------
    Refusal
        If there is none, or one is no id.
    """
    name = next((name for name in names if state.get(name) is not None), names[0])
    value = state.get(name)
    many = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    numbers = [one for one in many if isinstance(one, int) and not isinstance(one, bool)]
    if not many or len(numbers) < len(many):
        raise Refusal(400, explained(f"{name} is {value!r}; it must be an id, or a list of ids"))
    return numbers


def check_known(library: Library, kind: str, numbers: Sequence[int]) -> list[Record]:
    """Return the items with these ids.

    Parameters
    ----------
    library : Library
        Where they are.
    kind : str
        ``image`` or ``video``.
    numbers : sequence of int
        The ids.

    Returns
    -------
    list of Record
        In the same order.

    Raises
    ------
    Refusal
        With status 404, if one is not known; names it.
    """
    found = []
    for number in numbers:
        record = library.record("image" if kind == "image" else "video", number)
        if record is None:
            raise Refusal(404, explained(f"There is no {kind} {number} in the library."))
        found.append(record)
    return found


def read_writing(state: JSONObject, library: Library, *, projects: Sequence[str]) -> WriteWork | None:
    """Return how predictions are written back.

    Parameters
    ----------
    state : JSONObject
        The submit's.
    library : Library
        Where they would be.
    projects : sequence of str
        The folders of the projects that the images are in.

    Returns
    -------
    WriteWork or None
        None if they are not.

    Raises
    ------
    Refusal
        If a value makes no sense, or there is no such project.
    """
    mode, output = state.get("upload_mode"), state.get("output_project_id")
    if mode is None and output is None:
        return None
    mode = "append" if mode is None else mode
    if mode not in MODES:
        raise Refusal(400, explained(f"upload_mode is {mode!r}; it must be one of {', '.join(MODES)}"))
    if mode == "create" and output is not None:
        text = "upload_mode create makes a new project; leave out output_project_id, or choose another mode"
        raise Refusal(400, explained(text))
    project = _new_project(library, projects) if mode == "create" else _project(library, output)
    suffix = state.get("model_prediction_suffix")
    threshold = _threshold(state.get("iou_merge_threshold"))
    return WriteWork(str(mode), threshold, project, suffix if isinstance(suffix, str) else "")


def _threshold(value: JSON) -> float:
    """Return the threshold of ``iou_merge``."""
    if value is None:
        return _THRESHOLD
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise Refusal(400, explained(f"iou_merge_threshold is {value!r}; it must be a number from 0 to 1"))
    return float(value)


def _project(library: Library, number: JSON) -> str | None:
    """Return the folder of the project that is written to."""
    if number is None:
        return None
    for project in library.projects():
        if project["id"] == number:
            return str(project["name"])
    raise Refusal(404, explained(f"There is no project {number!r} in the library."))


def _new_project(library: Library, projects: Sequence[str]) -> str:
    """Return the folder of a project that is not there yet, and make it, so that nobody else takes it."""
    base = projects[0] if len(set(projects)) == 1 and projects[0] != "." else "images"
    for number in range(1, 1 << 20):
        name = f"{base} (predictions)" if number == 1 else f"{base} (predictions {number})"
        try:
            (library.root / name).mkdir()
        except FileExistsError:
            continue
        return name
    raise Refusal(400, explained("There are too many projects of predictions."))
