"""Folders that Supervisely's own SDK opens; tasks of `their_client`."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any


def project(task: dict[str, Any]) -> dict[str, Any]:
    """Open a project folder, and every annotation in it."""
    import supervisely as sly

    opened = sly.Project(task["folder"], sly.OpenMode.READ)
    answer: dict[str, Any] = {
        "classes": {one.name: one.geometry_type.geometry_name() for one in opened.meta.obj_classes},
        "tags": {one.name: one.value_type for one in opened.meta.tag_metas},
        "datasets": {one.name: sorted(one.get_items_names()) for one in opened.datasets},
        "total": opened.total_items,
        "annotations": {},
    }
    for dataset in opened.datasets:
        for file in Path(dataset.ann_dir).iterdir():
            annotation = sly.Annotation.load_json_file(str(file), opened.meta)
            answer["annotations"][f"{dataset.name}/{file.name}"] = _described(annotation)
        for name in dataset.get_items_names():
            # As its users do: the picture, by its name, has the annotation's size.
            annotation = dataset.get_ann(name, opened.meta)
            assert sly.image.read(dataset.get_img_path(name)).shape[:2] == annotation.img_size
    return answer


def imported(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Read a folder with their converter of a format."""
    from supervisely.convert.image.label_me.label_me_converter import LabelmeConverter
    from supervisely.convert.image.pascal_voc.pascal_voc_converter import PascalVOCConverter

    kind = {"labelme": LabelmeConverter, "voc": PascalVOCConverter}[task["format"]]
    converter = kind(task["folder"], None, False)
    if not converter.validate_format():
        raise ValueError(f"{task['folder']} is not {task['format']} to them")
    items = sorted(converter._items, key=lambda item: item.path)
    return [
        {"name": Path(item.path).name, **_described(converter.to_supervisely(item, converter._meta, {}, {}))}
        for item in items
    ]


def _described(annotation: Any) -> dict[str, Any]:
    """Return an annotation as their class has read it."""
    return {
        "size": list(annotation.img_size),
        "tags": [[tag.name, tag.value] for tag in annotation.img_tags],
        "objects": [_label(label, annotation.img_size) for label in annotation.labels],
        "data": annotation.custom_data,
    }


def _label(label: Any, size: tuple[int, int]) -> dict[str, Any]:
    """Return an object: class, geometry, box, tags, and the pixels of a mask."""
    import numpy as np

    box = label.geometry.to_bbox()
    found = {
        "title": label.obj_class.name,
        "kind": label.geometry.geometry_name(),
        "box": [box.left, box.top, box.right, box.bottom],
        "tags": [[tag.name, tag.value] for tag in label.tags],
    }
    if found["kind"] in {"bitmap", "alpha_mask"}:
        full = np.zeros(size, np.uint8)
        label.geometry.draw(full, 255)  # an alpha mask takes its part of it
        found["mask"] = base64.b64encode(np.packbits(full != 0).tobytes()).decode()
    return found
