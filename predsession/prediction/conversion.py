"""A prediction in the forms that other tools want: supervision's detections, a table, GeoJSON.

Invariant: what is handed out is the caller's own, writable; the prediction does not change with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from predsession.errors import MissingExtraError, PredSessionError
from predsession.prediction.display import Shown
from predsession.prediction.rows import zeros
from predsession.wire.geometry import MaskCrop, Size
from predsession.wire.jsontypes import JSON

if TYPE_CHECKING:
    import pandas as pd
    import supervision as sv

_MASKED = frozenset(("bitmap", "alpha_mask", "polygon"))
"""Geometries that are a mask for those who ask for masks; the mask of a box says no more than the box."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Convertible(Shown):
    """What was found in one picture, to be handed on."""

    def to_supervision(self, *, masks: Literal["full", "compact", "none"] = "full") -> sv.Detections:
        """Return what was found as supervision's own type, for its annotators, zones and trackers.

        Parameters
        ----------
        masks : {"full", "compact", "none"}
            "full" is a (N, H, W) bool ndarray: N * H * W bytes, a gigabyte for fifty masks of 20 megapixels;
            "compact" is supervision's ``CompactMask``, which takes as much as the masks' rectangles at most;
            "none" leaves them out.

        Returns
        -------
        supervision.Detections
            Row i is object i. ``xyxy`` (N, 4) float32; ``confidence`` (N,) float32; ``class_id`` (N,) int64,
            -1 for a class that is not in the model's list; ``data["class_name"]`` (N,) of str; ``mask`` where
            an object is a mask or a polygon, else None; ``tracker_id`` (N,) int64 where something was
            tracked, else None. An object without a track has -1 there, as in the package trackers: keep the
            others with ``detections[detections.tracker_id >= 0]``. Where all objects are oriented boxes,
            ``data["xyxyxyxy"]`` (N, 4, 2) float32 has their corners. ``metadata`` is empty, as
            ``Detections.merge`` refuses what differs from one picture to the next. It refuses as well to put
            together detections of which only some have masks: convert those with ``masks="none"``.

        Raises
        ------
        ValueError
            If `masks` is another word.
        MissingExtraError
            Without supervision, or with one that has no ``CompactMask`` where "compact" is asked for.
        ProtocolError
            If an object is damaged.
        PredSessionError
            If full masks do not fit into memory.
        """
        if masks not in {"full", "compact", "none"}:
            raise ValueError(f'masks is {masks!r}; wanted "full", "compact" or "none"')
        try:
            import supervision as sv
        except ImportError:
            raise MissingExtraError("supervision", "to_supervision()") from None
        data: dict[str, npt.NDArray[np.generic] | list[object]] = {
            "class_name": np.array(self.classes.tolist(), np.str_)
        }
        if len(self) and set(self.shapes) == {"oriented_bbox"}:
            data["xyxyxyxy"] = np.array([rings[0] for rings in self.polygons], np.float32)
        has_masks = masks != "none" and not _MASKED.isdisjoint(self.shapes)
        make = _compact if masks == "compact" else self._full
        return sv.Detections(
            xyxy=self.boxes.copy(),
            mask=make(self.size, self.mask_crops) if has_masks else None,
            confidence=self.scores.copy(),
            class_id=self.class_ids.copy(),
            tracker_id=None if self.track_ids is None else self.track_ids.copy(),
            data=data,
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return what was found as a table: one row an object.

        Returns
        -------
        pandas.DataFrame
            Columns: index, name, path, frame_index, timestamp (of the input); object (the row's number);
            class_id, class, score; x1, y1, x2, y2 (pixels, half-open); width, height (of the picture); shape
            (the geometry's name); track_id (missing where there is none). Columns and dtypes are the same
            where nothing was found, so that `pandas.concat` takes tables as they come; for many predictions
            `predsession.to_pandas` is quicker.

        Raises
        ------
        MissingExtraError
            Without pandas.
        ProtocolError
            If an object is damaged.
        """
        from predsession.prediction.table import to_pandas

        return to_pandas((self,))

    def to_geojson(self, transform: object = None, *, crs: object = None) -> dict[str, JSON]:
        """Return what was found in the coordinates of a map: GeoJSON, one Feature an object.

        A mask becomes a Polygon along the edges of its pixels, or a MultiPolygon where it has several parts;
        its area is that of its pixels. A polygon keeps its vertices, which name pixels: each is put into the
        middle of its own, as are those of lines and keypoints (MultiPoint, the visible ones). A box becomes
        its four corners. A mask without a pixel has the geometry null.

        Parameters
        ----------
        transform : six numbers, or an object with the attributes a to f, optional
            From pixels to coordinates: x = a * column + b * row + c, y = d * column + e * row + f, where 0, 0
            is the upper left corner of the upright picture, as in rasterio and affine (GDAL has c, a, b, f,
            d, e). Without it, the picture's own: a GeoTIFF's tags, or a world file beside it (.jgw, .pgw,
            .tfw, .wld). Those belong to the picture as it is stored, and where its EXIF orientation turns it,
            they are turned with it.
        crs : int, str or object with to_epsg(), optional
            The coordinate system: an EPSG code, 32633 or "EPSG:32633". Without it, what a GeoTIFF says.

        Returns
        -------
        dict
            A FeatureCollection. Each Feature has the properties name, index, class, class_id, score, shape,
            track_id; frame_index and timestamp for a frame; keypoints (their ids) for keypoints. Coordinates
            are not reprojected. RFC 7946 wants WGS 84; another system is named in the member ``crs`` of the
            older GeoJSON, which GDAL and QGIS read and others may not.

        Raises
        ------
        ValueError
            If `transform` is no transform, or `crs` no code.
        SourceError
            If none was handed in and the picture is not at hand, has another size, or does not say where it
            lies.
        ProtocolError
            If an object is damaged.
        """
        from predsession.prediction.geojson import feature_collection

        return feature_collection(self, transform, crs)

    def _full(self, size: Size, crops: tuple[MaskCrop, ...]) -> npt.NDArray[np.bool_]:
        """Return masks in full pictures, which are not kept: they are large."""
        full = zeros(
            self.name, (len(crops), size.height, size.width), np.bool_, remedy='; use masks="compact"'
        )
        for page, (x, y, mask) in zip(full, crops, strict=True):
            page[y : y + mask.shape[0], x : x + mask.shape[1]] = mask
        return full


def _compact(size: Size, crops: tuple[MaskCrop, ...]) -> sv.CompactMask:
    """Return masks as supervision packs them, without a full picture of any."""
    try:
        from supervision import CompactMask
    except ImportError:
        from importlib.metadata import version

        raise PredSessionError(
            f"supervision {version('supervision')} has no CompactMask: pip install --upgrade supervision"
        ) from None
    packed = []
    for x, y, mask in crops:
        height, width = mask.shape
        if not mask.size:  # outside of the picture: it has no rectangle of its own
            x, y, mask, height, width = 0, 0, np.zeros((1, 1), np.bool_), 1, 1
        frame = np.array([[0, 0, width - 1, height - 1]])
        small = CompactMask.from_dense(mask[None], frame, (height, width))
        packed.append(small.with_offset(x, y, (size.height, size.width)))
    return CompactMask.merge(packed)
