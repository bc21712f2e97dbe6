"""The typed result for one picture: arrays, not JSON; lazy, frozen, the same after every journey.

=============  =====================================================================================
`result`       `Prediction`: made from the wire, from JSON, from arrays; written as JSON; compared
`rows`         the annotation's objects as arrays that share their rows
`display`      drawn on its picture, in a file, in a notebook
`pictures`     picture files
`arrays`       a caller's own arrays, brought together as an annotation
`columns`      each of those arrays, checked for itself
=============  =====================================================================================
"""

from __future__ import annotations

from predsession.prediction.display import Loader
from predsession.prediction.result import Prediction

__all__ = ["Loader", "Prediction"]
