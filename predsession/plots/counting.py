"""What plots count, as predictions come: memory does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from predsession.prediction import Prediction

RGB = tuple[int, int, int]
_OTHERS: RGB = (150, 150, 150)
_LONGEST_NAME = 28
_MOST_BINS = 160  # of a clip's time axis: more steps than these are noise to the eye


class Found:
    """Counts by class, and the colours of the classes."""

    def __init__(self) -> None:
        self.pictures = self.objects = 0
        self._counts = Counter[str]()
        self._inks: dict[str, RGB] = {}
        self._rest: tuple[str, ...] = ()

    def add(self, prediction: Prediction) -> None:
        """Count a prediction's objects."""
        counts = prediction.counts()
        self.pictures += 1
        self.objects += counts.total()
        for name in counts.keys() - self._inks.keys():
            self._inks[name] = prediction.meta.color(name)
        self._counts.update(counts)

    def ranked(self, top: int) -> list[str | None]:
        """Return the most frequent classes, and None for all others where there are more."""
        names = [name for name, _ in sorted(self._counts.items(), key=lambda each: (-each[1], each[0]))]
        if len(names) <= top + 1:  # a bar for others that is only one class may as well have its name
            return [*names]
        self._rest = tuple(names[top:])
        return [*names[:top], None]

    def members(self, name: str | None) -> Sequence[str]:
        """Return the classes behind a name that `ranked` gave."""
        return self._rest if name is None else (name,)

    def count(self, name: str | None) -> int:
        """Return how many objects there are of a class, or of all others."""
        return sum(self._counts[each] for each in self.members(name))

    def label(self, name: str | None) -> str:
        """Return what a class is called in a plot."""
        if name is None:
            return f"{len(self._rest)} others"
        plain = "".join(sign if sign.isprintable() else " " for sign in name)
        # Matplotlib would take what is between two dollar signs for a formula.
        short = plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
        return short.replace("$", r"\$")

    def ink(self, name: str | None) -> tuple[float, float, float]:
        """Return a class's colour, as matplotlib wants it."""
        red, green, blue = _OTHERS if name is None else self._inks[name]
        return red / 255, green / 255, blue / 255


class Course:
    """Counts by class over time, in bins whose number does not grow: when it is reached, pairs are joined."""

    def __init__(self) -> None:
        self.has_clock = True
        self.per_bin = 1
        self._begins: list[float] = []
        self._frames: list[int] = []
        self._bins: list[Counter[str]] = []
        self._end = 0.0
        self._last = ("", -1)

    def add(self, prediction: Prediction) -> None:
        """Count a frame's objects."""
        if prediction.frame_index is None:
            raise ValueError(f"{prediction.name or 'a prediction'} is no frame of a clip; it has no time")
        if not self._bins:
            self.has_clock = prediction.timestamp is not None
        time = prediction.timestamp if self.has_clock else prediction.frame_index
        if time is None:
            raise ValueError(f"frame {prediction.frame_index} has no time, though frames before it have")
        self._check_order(prediction, float(time))
        if not self._bins or self._frames[-1] == self.per_bin:
            self._halve()
            self._begins.append(float(time))
            self._frames.append(0)
            self._bins.append(Counter())
        self._frames[-1] += 1
        self._bins[-1].update(prediction.counts())
        self._end = float(time)
        self._last = prediction.name, prediction.frame_index

    def _check_order(self, prediction: Prediction, time: float) -> None:
        """Refuse a frame that is not after the one before: a line would run back."""
        name, number = self._last
        frame = prediction.frame_index
        if self._bins and (frame is None or frame <= number or time < self._end):
            before = f"frame {number}" + (f" of {name}" if name != prediction.name else "")
            raise ValueError(
                f"frame {frame} of {prediction.name or 'a clip'} comes after {before}: wanted are the frames "
                "of one clip, in order"
            )

    def _halve(self) -> None:
        """Join neighbours, where there are too many bins."""
        if len(self._bins) < _MOST_BINS:
            return
        self.per_bin *= 2
        self._begins = self._begins[::2]
        self._frames = [sum(self._frames[place : place + 2]) for place in range(0, len(self._frames), 2)]
        self._bins = [first + second for first, second in zip(self._bins[::2], self._bins[1::2], strict=True)]

    def times(self) -> npt.NDArray[np.float64]:
        """Return when each bin begins, and when the last one ends."""
        begins = np.array(self._begins)
        step = float(np.median(np.diff(begins))) / self.per_bin if len(begins) > 1 else 1.0
        return np.append(begins, self._end + step)

    def means(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return how many objects of these classes each bin's frames have; the last twice, for its end."""
        counts = [sum(each[name] for name in names) for each in self._bins]
        means = np.array(counts, np.float64) / np.array(self._frames)
        return np.append(means, means[-1:])
