"""What supervision and trackers make of predictions: annotators, slices, tracks. Prints it as JSON."""

from __future__ import annotations

import json
import sys

import numpy as np
import supervision as sv
from trackers import ByteTrackTracker

from predsession import Prediction, read_predictions


def annotated(prediction: Prediction) -> dict[str, bool]:
    """Return for each annotator whether it drew something."""
    ground = np.zeros((prediction.size.height, prediction.size.width, 3), np.uint8)
    drawn = {}
    for kind in (sv.BoxAnnotator, sv.MaskAnnotator, sv.PolygonAnnotator, sv.LabelAnnotator, sv.DotAnnotator):
        drawn[kind.__name__] = bool(kind().annotate(ground.copy(), prediction.to_supervision()).any())
    compact = prediction.to_supervision(masks="compact")
    drawn["compact"] = bool(sv.MaskAnnotator().annotate(ground.copy(), compact).any())
    return drawn


def tracked(predictions: list[Prediction]) -> list[list[int]]:
    """Return the track ids that trackers gives to each frame's detections."""
    tracker = ByteTrackTracker()
    return [tracker.update(each.to_supervision()).tracker_id.tolist() for each in predictions]


def main(path: str) -> dict[str, object]:
    """Run all of it over a file of predictions: one with masks, one with nothing, then frames."""
    masked, nothing, *frames = read_predictions(path)
    made = masked.to_supervision()
    merged = sv.Detections.merge([each.to_supervision() for each in (*frames, nothing)])
    return {
        "opencv": "cv2" in sys.modules,
        "masked": annotated(masked),
        "nothing": annotated(nothing),
        "areas": made.area.tolist(),
        "names": made[made.confidence > 0.5].data["class_name"].tolist(),
        "merged": len(merged),
        "tracks": tracked(frames),
        "nms": len(sv.Detections.merge([frames[0].to_supervision()] * 2).with_nms(threshold=0.5)),
    }


sys.stdout.write(json.dumps(main(sys.argv[1])))
