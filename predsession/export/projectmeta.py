"""What a Supervisely project says of its classes and tags, growing as predictions come.

Invariant: what was written once stays right: a class gets more general, never another, and a tag keeps the
kind of its values; so annotations that were written before can be read with the meta that is written last.
"""

from __future__ import annotations

from predsession.export.classes import ClassTable
from predsession.export.facts import OURS
from predsession.export.growingmeta import ids_from
from predsession.prediction import Prediction
from predsession.wire.colors import color_text, named_color
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import CONFIDENCE, ClassInfo, ModelMeta, TagInfo
from predsession.wire.skeleton import NODE_COLOR

ANY = "any"
NUMBER, TEXT, NOTHING = "any_number", "any_string", "none"
_KINDS = frozenset((NUMBER, TEXT, NOTHING))
_CLASS_IDS = "class_ids"


class ProjectMeta:
    """The classes and tags of a project.

    Parameters
    ----------
    known : JSON object
        The ``meta.json`` that is there; empty for none.
    """

    def __init__(self, known: JSONObject) -> None:
        self._rest = {key: value for key, value in known.items() if key not in ("classes", "tags", OURS)}
        entries = [dict(as_object(each)) for each in as_list(known.get("classes"))]
        self._classes = {str(entry.get("title")): entry for entry in entries}
        self._tags = {str(tag.get("name")): dict(tag) for tag in map(as_object, as_list(known.get("tags")))}
        self._seen = {title for title, entry in self._classes.items() if entry.get("shape")}
        # Their place in the file is not their number, where predictions bring the classes one by one.
        self._numbers = ClassTable()
        self._numbers.keep({number: title for title, number in numbers_of(known).items()})
        self._learnt: ModelMeta | None = None
        self._grown = False

    @property
    def has_grown(self) -> bool:
        """Whether there is more to write than `to_json` has returned so far."""
        return self._grown

    def learn(self, prediction: Prediction) -> None:
        """Take over the model's classes and tags.

        Parameters
        ----------
        prediction : Prediction
            Brings them.
        """
        known = len(self._numbers)
        self._numbers.learn(prediction)
        self._grown |= len(self._numbers) > known
        if prediction.meta is self._learnt:
            return
        self._learnt = prediction.meta
        for info in prediction.meta.classes:
            self._add_class(info)
        for tag in prediction.meta.tags:
            # A list of words to choose from is not ours to know.
            self._add_tag(tag.name, tag.value_type if tag.value_type in _KINDS else TEXT)

    def _add_class(self, info: ClassInfo) -> None:
        """Add a class, if it is new."""
        if info.title not in self._classes:
            self._classes[info.title] = info.to_json()
            self._grown = True

    def _add_tag(self, name: str, kind: str) -> None:
        """Add a tag, if it is new."""
        if name not in self._tags:
            color = CONFIDENCE.color if name == CONFIDENCE.name else named_color(name)
            self._tags[name] = TagInfo(name, kind, color).to_json()
            self._grown = True

    def saw(self, prediction: Prediction, title: str, shape: str) -> None:
        """Take note of an object: a class whose objects differ in their geometry is of any.

        Parameters
        ----------
        prediction : Prediction
            Whose colours count for a class that the model does not know.
        title : str
            Its class.
        shape : str
            Its geometry.
        """
        self._add_class(ClassInfo(title, shape, prediction.meta.color(title)))
        entry = self._classes[title]
        # What the model says holds until the first object is there: some say a rectangle of all of them.
        wanted = shape if title not in self._seen or entry["shape"] == shape else ANY
        if entry["shape"] == ANY:
            wanted = ANY
        self._seen.add(title)
        if entry["shape"] != wanted:
            entry["shape"] = wanted
            self._grown = True

    def saw_nodes(self, title: str, names: list[str]) -> None:
        """Take note of keypoints, which the class must name.

        Parameters
        ----------
        title : str
            A class that was seen.
        names : list of str
            The keypoints' ids.
        """
        config = as_object(self._classes[title].get("geometry_config"))
        nodes = dict(as_object(config.get("nodes")))
        missing = [name for name in names if name not in nodes]
        if missing:
            for name in missing:
                nodes[name] = {"label": name, "loc": [0, 10 * len(nodes)], "color": color_text(NODE_COLOR)}
            self._classes[title]["geometry_config"] = {"nodes": nodes, "edges": config.get("edges") or []}
            self._grown = True

    def takes_tag(self, name: str, value: JSON) -> bool:
        """Take note of a tag.

        Parameters
        ----------
        name : str
            Its name.
        value : JSON
            A number, a text, or None.

        Returns
        -------
        bool
            Whether its values can be of that kind; the first one decides.
        """
        kind = NOTHING if value is None else TEXT if isinstance(value, str) else NUMBER
        self._add_tag(name, kind)
        return self._tags[name].get("value_type") == kind

    def to_json(self) -> dict[str, JSON]:
        """Return the whole of it; what has grown counts as written.

        Returns
        -------
        dict
            What ``meta.json`` holds.
        """
        self._grown = False
        own = {**ModelMeta().to_json(), "projectType": "images", **self._rest}
        classes: list[JSON] = [_readable(entry) for entry in self._classes.values()]
        numbers: dict[str, JSON] = {title: number for number, title in self._numbers.titles.items()}
        ours = {OURS: {_CLASS_IDS: numbers}} if numbers else {}
        return {**own, "classes": classes, "tags": list(self._tags.values()), **ours}


def numbers_of(known: JSONObject) -> dict[str, int]:
    """Return the numbers of a project's classes.

    Parameters
    ----------
    known : JSON object
        What ``meta.json`` holds.

    Returns
    -------
    dict
        By title; empty where it says none.
    """
    return ids_from(as_object(known.get(OURS)).get(_CLASS_IDS))


def _readable(entry: JSONObject) -> JSONObject:
    """Return a class as their SDK reads it: it opens no project with a class of keypoints that names none."""
    has_nodes = as_object(as_object(entry.get("geometry_config")).get("nodes"))
    return {**entry, "shape": ANY} if entry.get("shape") == "graph" and not has_nodes else entry
