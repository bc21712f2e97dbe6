"""What pycocotools and supervision find in our COCO documents and YOLO folders; runs under their interpreter.

Its last line is JSON.
"""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from pathlib import Path

import numpy as np
import supervision as sv
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from predsession.export.rle import crop_of, pack, runs_of, unpack
from predsession.wire.geometry import MaskCrop, Size


def rle(count: str) -> object:
    """Hold our run lengths against theirs: packed and not, there and back, area and box."""
    random, differ = np.random.default_rng(0), []
    for number in range(int(count)):
        height, width = (int(each) for each in random.integers(1, 90, 2))
        mask = random.random((height, width)) < random.choice((0, 0.01, 0.3, 0.99, 1))
        runs = runs_of(MaskCrop(0, 0, mask), Size(width, height))
        theirs = masks.encode(np.asfortranarray(mask.astype(np.uint8)))
        plain = masks.frPyObjects({"size": [height, width], "counts": runs.tolist()}, height, width)
        back = crop_of(unpack(theirs["counts"].decode()), Size(width, height))
        same = (
            pack(runs) == theirs["counts"].decode() == plain["counts"].decode()
            and int(masks.area(theirs)) == int(runs[1::2].sum())
            and back.mask.sum() == mask.sum()
            and (
                mask[back.y : back.y + back.mask.shape[0], back.x : back.x + back.mask.shape[1]] == back.mask
            ).all()
        )
        if not same:
            differ.append(number)
    return differ


def coco(path: str, wanted: str) -> object:
    """Open a document: masks against ours, and its annotations as results against itself."""
    truth = COCO(path)
    expected = np.load(wanted)
    annotations = truth.loadAnns(truth.getAnnIds())
    segmented = [each for each in annotations if "segmentation" in each]
    differ = {
        each["id"]: int((truth.annToMask(each).astype(bool) != expected[str(each["id"])]).sum())
        for each in segmented
        if str(each["id"]) in expected
    }
    found = truth.loadRes(copy.deepcopy(truth.dataset["annotations"]))
    kinds = ["bbox"] + ["segm"] * bool(segmented) + ["keypoints"] * any("keypoints" in e for e in annotations)
    return {
        "images": [truth.imgs[key]["file_name"] for key in sorted(truth.imgs)],
        "categories": {each["name"]: each["id"] for each in truth.loadCats(truth.getCatIds())},
        "annotations": len(annotations),
        "differ": differ,
        "empty": [each["id"] for each in segmented if not truth.annToMask(each).any()],
        "precision": {kind: precision(truth, found, kind) for kind in kinds},
    }


def precision(truth: COCO, found: COCO, kind: str) -> float:
    """Return the average precision."""
    with_keypoints = [key for key, each in truth.anns.items() if each.get("num_keypoints")]
    one = COCOeval(truth, found, kind)
    if kind == "keypoints":
        one.params.kpt_oks_sigmas = np.full(len(truth.anns[with_keypoints[0]]["keypoints"]) // 3, 0.1)
        one.params.catIds = sorted({truth.anns[key]["category_id"] for key in with_keypoints})
    one.evaluate()
    one.accumulate()
    one.summarize()
    return float(one.stats[0])


def described(dataset: sv.DetectionDataset, root: str, out: str) -> object:
    """Return boxes and classes by picture; masks go into a file."""
    pictures, kept = {}, {}
    for path in dataset.image_paths:
        one = dataset.annotations[path]
        name = Path(path).resolve().relative_to(Path(root).resolve()).as_posix()
        pictures[name] = {
            "boxes": one.xyxy.tolist(),
            "classes": [dataset.classes[number] for number in ([] if one.class_id is None else one.class_id)],
        }
        if one.mask is not None:
            kept[name] = one.mask
    np.savez(out, **kept)
    return {"classes": dataset.classes, "pictures": pictures}


def sv_coco(images: str, path: str, out: str) -> object:
    """Open a document with supervision."""
    return described(sv.DetectionDataset.from_coco(images, path), images, out)


def sv_yolo(root: str, out: str) -> object:
    """Open a folder with supervision."""
    dataset = sv.DetectionDataset.from_yolo(f"{root}/images", f"{root}/labels", f"{root}/data.yaml")
    return described(dataset, f"{root}/images", out)


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        answer = {"rle": rle, "coco": coco, "sv_coco": sv_coco, "sv_yolo": sv_yolo}[sys.argv[1]](
            *sys.argv[2:]
        )
    sys.stdout.write(json.dumps(answer) + "\n")
