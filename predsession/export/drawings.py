"""A folder of pictures with what was found drawn on them."""

from __future__ import annotations

from collections.abc import Sequence

from predsession.export.foldered import Foldered
from predsession.export.folders import write_whole
from predsession.export.names import OutputNames
from predsession.export.putting import encoded
from predsession.export.target import Target, on_disk, told_at_once
from predsession.prediction import Prediction


class Drawings(Foldered):
    """Draws predictions as they come.

    Parameters
    ----------
    target : Target
        The folder; it is made.
    sources : sequence of str
        The folders and files that were handed in; places are kept relative to what they have in common.

    Raises
    ------
    SourceError
        If it is where the pictures themselves are, a file, holds something and may not be touched, or cannot
        be written to.
    """

    def __init__(self, target: Target, sources: Sequence[str]) -> None:
        with told_at_once(target.path):
            self._names = OutputNames(target.path, sources)
        super().__init__(target)

    def _write(self, prediction: Prediction) -> None:
        """Draw a prediction."""
        picture = prediction.visualize()
        with on_disk(self._folder):
            place = self._names.path_for(prediction)
        write_whole(place, encoded(picture, place.suffix))
