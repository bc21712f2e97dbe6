"""The cases: a file each, and their order in the table."""

from __future__ import annotations

from benchmarks.bench import Case
from benchmarks.cases import (
    edge,
    encoding,
    first_prediction,
    growth,
    imports,
    memory,
    one_image,
    reply,
    store,
    tensor,
    thousand_images,
    throughput,
    video,
)

CASES: tuple[Case, ...] = (
    one_image,
    first_prediction,
    thousand_images,
    video,
    memory,
    imports,
    reply,
    encoding,
    throughput,
    growth,
    edge,
    tensor,
    store,
)
"""In the order of the table."""
