"""What supervision and LabelMe read in folders of annotations. Prints it as JSON.

voc FOLDER, labelme FOLDER: what supervision makes of pictures and annotations.
files FOLDER: what LabelMe itself reads in each file, and the pixels that it fills.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

import numpy as np


def voc(folder: Path) -> dict[str, object]:
    """Read a folder of Pascal VOC."""
    import supervision as sv

    return _described(
        sv.DetectionDataset.from_pascal_voc(str(folder / "JPEGImages"), str(folder / "Annotations"))
    )


def labelme(folder: Path) -> dict[str, object]:
    """Read a folder of LabelMe."""
    import supervision as sv

    return _described(sv.DetectionDataset.from_labelme(str(folder), str(folder)))


def _described(dataset: object) -> dict[str, object]:
    """Return boxes and classes by picture."""
    classes = dataset.classes
    return {
        Path(path).name: [
            [classes[number], box]
            for number, box in zip(found.class_id.tolist(), found.xyxy.tolist(), strict=True)
        ]
        for path, found in dataset.annotations.items()
    }


def files(folder: Path) -> dict[str, object]:
    """Read files as LabelMe does when it opens them, pictures included."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from labelme import LabelFile
    from labelme.utils import img_data_to_arr, shapes_to_label

    answer: dict[str, object] = {}
    for path in sorted(folder.rglob("*.json")):
        opened = LabelFile(str(path))
        height, width = img_data_to_arr(opened.image_data).shape[:2]
        numbers = {"_background_": 0, **{each["label"]: 1 for each in opened.shapes}}
        filled = [
            base64.b64encode(
                np.packbits(shapes_to_label((height, width), [shape], numbers)[0] != 0).tobytes()
            ).decode()
            for shape in opened.shapes
        ]
        answer[path.name] = {
            "size": [width, height],
            "flags": opened.flags,
            "shapes": [
                [each["label"], each["shape_type"], each["points"], each["group_id"]]
                for each in opened.shapes
            ],
            "kept": [sorted(each["other_data"]) for each in opened.shapes],
            "filled": filled,
        }
    return answer


if __name__ == "__main__":
    work = {"voc": voc, "labelme": labelme, "files": files}[sys.argv[1]]
    sys.stdout.write(json.dumps(work(Path(sys.argv[2]))) + "\n")
