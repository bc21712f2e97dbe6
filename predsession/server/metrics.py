"""Counters and histograms, and the text that Prometheus reads.

References
----------
.. [1] https://prometheus.io/docs/instrumenting/exposition_formats/ , text format 0.0.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One value with its labels.

    Parameters
    ----------
    value : float
        The number.
    labels : mapping
        Names and values.
    """

    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Family:
    """What is known of a metric."""

    kind: str
    help: str
    buckets: tuple[float, ...] = ()


FAMILIES: dict[str, _Family] = {
    "requests_total": _Family("counter", "Requests, by call and status."),
    "request_seconds": _Family("histogram", "Time to answer a request, without pops that wait.", _SECONDS),
    "jobs_total": _Family("counter", "Jobs that ended, by model and stage."),
    "items_total": _Family("counter", "Pictures that were answered, by model and outcome."),
    "batch_size": _Family("histogram", "Pictures in a batch, by model.", _SIZES),
    "model_seconds": _Family("histogram", "Time of a model for a batch.", _SECONDS),
    "decode_seconds": _Family("histogram", "Time a model waited for a batch to be decoded.", _SECONDS),
    "queue_seconds": _Family("histogram", "Time from a submit to its first batch.", _SECONDS),
    "worker_restarts_total": _Family("counter", "Workers that died or hung, by model."),
    "queue_items": _Family("gauge", "Pictures that wait for a worker, by model."),
    "jobs": _Family("gauge", "Jobs that are known, by stage."),
    "model_ready": _Family("gauge", "Whether a model's worker is ready."),
    "upload_bytes": _Family("gauge", "Bytes of uploads on the disk."),
    "database_bytes": _Family("gauge", "Bytes of the database in use."),
    "resident_bytes": _Family("gauge", "Memory of the server's own process."),
}
"""Every metric; the names in the text begin with ``predsession_``."""


class Metrics:
    """The counters of a server; only its loop touches them."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, list[float]]] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        series = self._counters.setdefault(name, {})
        key = tuple(labels.items())
        series[key] = series.get(key, 0) + amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        buckets = FAMILIES[name].buckets
        series = self._histograms.setdefault(name, {})
        # One cell for each bucket, then the sum and the count.
        cells = series.setdefault(tuple(labels.items()), [0.0] * (len(buckets) + 2))
        for place, bound in enumerate(buckets):
            if value <= bound:
                cells[place] += 1
        cells[-2] += value
        cells[-1] += 1

    def render(self, gauges: Mapping[str, Iterable[Sample]]) -> str:
        """Write everything down.

        Parameters
        ----------
        gauges : mapping
            Values that are looked up now, by metric.

        Returns
        -------
        str
            The text format.
        """
        lines: list[str] = []
        for name, family in FAMILIES.items():
            lines += [f"# HELP predsession_{name} {family.help}", f"# TYPE predsession_{name} {family.kind}"]
            for labels, value in self._counters.get(name, {}).items():
                lines.append(_line(name, labels, value))
            for sample in gauges.get(name, ()):
                lines.append(_line(name, tuple(sample.labels.items()), sample.value))
            for labels, cells in self._histograms.get(name, {}).items():
                lines += _histogram(name, labels, cells, family.buckets)
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, cells: list[float], buckets: tuple[float, ...]) -> list[str]:
    """Write one histogram."""
    bounds = zip((*buckets, math.inf), (*cells[:-2], cells[-1]), strict=True)
    lines = [
        _line(f"{name}_bucket", (*labels, ("le", "+Inf" if math.isinf(bound) else f"{bound:g}")), count)
        for bound, count in bounds
    ]
    return [*lines, _line(f"{name}_sum", labels, cells[-2]), _line(f"{name}_count", labels, cells[-1])]


def _line(name: str, labels: Labels, value: float) -> str:
    """Write one sample."""
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    number = f"{value:.17g}"
    return f"predsession_{name}{{{inside}}} {number}" if inside else f"predsession_{name} {number}"


def _escaped(text: str) -> str:
    """Escape a label's value."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
