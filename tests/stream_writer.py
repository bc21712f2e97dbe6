"""A process that streams into a store, slowly enough to be killed: STORE FIRST COUNT BATCH [PAUSE]."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from predsession.stream import StreamSession


def main() -> None:
    """Run to the end."""
    store, first, count, size = sys.argv[1], *map(int, sys.argv[2:5])
    pause = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0

    def samples() -> Any:
        for number in range(first, first + count):
            yield {"object_id": f"o{number}", "x": np.full(50, number, np.float32)}
            if number % 40 == 7:
                yield f"bad {number}"

    def model(batch: Any) -> Any:
        time.sleep(pause)
        return {"twice": batch["x"] * 2, "first": batch["x"][:, 0].astype(np.int64)}

    with StreamSession(model, samples(), store, batch_size=size) as session:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for _ in session:
            pass
    sys.stdout.write(str(session.counts.stored))


if __name__ == "__main__":
    main()
