"""What may happen to a call in a long run, and how the run is counted."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from soak.client import READ_TIMEOUT

from predsession.testing import Fault, FaultyServer, RandomFaults

SHARE = 0.05
"""Of all calls."""
PAGE = b"<html><head><title>Bad Gateway</title></head><body>proxy</body></html>"
SUBMIT = "inference_batch_async"
SOON = {"Retry-After": "0.1"}
KINDS = (
    *(Fault("status", status=status, body=PAGE) for status in (429, 500, 502, 503, 504)),
    *(Fault("status", status=status, headers=SOON) for status in (429, 503, 507)),
    *(Fault(kind) for kind in ("drop_before", "drop_after", "truncate", "chunks", "close")),
    Fault("answer", body=PAGE, headers={"Content-Type": "text/html"}),
    Fault("rewrite", rewrite=lambda body: body[: len(body) // 2]),
    *(Fault("reset", SUBMIT, after_bytes=count) for count in (1, 2000, -1)),
    Fault("stall", seconds=READ_TIMEOUT + 0.5),
)
CLIENT = Path(__file__).with_name("client.py")


def new_seed() -> int:
    """Return the seed of the environment, or a new one."""
    return int(os.environ.get("PREDSESSION_SEED") or random.randrange(10**6))


def counted(url: str, count: int, *, seed: int, timeout: float, share: float = SHARE) -> dict[str, Any]:
    """Run the client against a server that spoils calls; return its figures and the faults made."""
    with FaultyServer(url, RandomFaults(KINDS, share, seed), keep_bodies=False) as faulty:
        done = subprocess.run(
            [sys.executable, str(CLIENT), faulty.url, str(count)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"seed {seed}: {done.stderr[-3000:]}"
        made: Counter[str] = Counter(
            f"{call.fault.kind} {call.fault.status}" if call.fault.kind == "status" else call.fault.kind
            for call in faulty.seen
            if call.fault
        )
        figures: dict[str, Any] = json.loads(done.stdout)
        return {
            **figures,
            "calls": len(faulty.seen),
            "spoilt": made.total(),
            "faults": dict(sorted(made.items())),
        }
