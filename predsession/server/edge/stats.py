"""GetStats: what the models and the machine did while one looked."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from predsession.server.edge.models import EdgeModel, Models
from predsession.server.memory import resident
from predsession.server.tally import Tally
from predsession.wire.edge import inference_pb2 as pb

_USUAL_MS, _LONGEST_MS = 500, 5000


async def system_stats(models: Models, window_ms: int) -> pb.SystemStats:
    """Look for a while, and tell what happened.

    Parameters
    ----------
    models : Models
        Which there are.
    window_ms : int
        Milliseconds; 0 for half a second.

    Returns
    -------
    SystemStats
        What "the device" is, are the models' processes here. A temperature is not known.
    """
    window = min(window_ms or _USUAL_MS, _LONGEST_MS) / 1000
    before = {model: model.runner.tally.copy() for model in models}
    worked = {model: model.runner.busy for model in before}
    cpu, began = _cpu_times(), time.monotonic()
    await asyncio.sleep(window)
    seconds = time.monotonic() - began
    present = [model for model in models if model in before]
    total, free = _ram()
    workers = sum(model.runner.size for model in present)
    # What is under way counts as it goes: a batch may well be longer than one looks. Once it is done the
    # model's own time for it counts, which is a little less.
    busy = sum(max(0.0, model.runner.busy - worked[model]) for model in present)
    pids = [pid for model in present for pid in model.runner.pids]
    return pb.SystemStats(
        model_stats=[_model_stats(model, before[model], seconds) for model in present],
        device_utilization=min(1.0, busy / (seconds * max(1, workers))),
        total_memory_bytes=total,
        used_memory_bytes=sum(resident(pid) or 0 for pid in [os.getpid(), *pids]),
        cpu_utilization=_cpu_share(cpu, _cpu_times()),
        ram_total_kib=total // 1024,
        ram_used_kib=(total - free) // 1024,
    )


def _model_stats(model: EdgeModel, before: Tally, seconds: float) -> pb.InferenceStats:
    """Return the counters of one model."""
    tally, runner = model.runner.tally, model.runner
    return pb.InferenceStats(
        model_id=model.id,
        total_inferences=tally.pictures,
        total_errors=tally.errors,
        avg_latency_us=round(1e6 * tally.waited / tally.answered) if tally.answered else 0,
        current_qps=(tally.pictures - before.pictures) / seconds,
        queue_depth=len(runner.shots) + runner.schedule.waiting(),
        avg_skew_us=model.skew_us // model.skews if model.skews else 0,
        max_skew_us=model.skew_longest_us,
        skew_samples=model.skews,
        hw_fps=tally.pictures / tally.busy if tally.busy else 0.0,
    )


def _cpu_times() -> tuple[int, int] | None:
    """Return the machine's ticks, idle and all; None where the system does not say."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    return ticks[3] + ticks[4], sum(ticks)


def _cpu_share(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float:
    """Return the share of the time in which processors worked; -1 if that is not known."""
    if before is None or after is None or after[1] <= before[1]:
        return -1.0
    return 1.0 - (after[0] - before[0]) / (after[1] - before[1])


def _ram() -> tuple[int, int]:
    """Return the machine's memory, and what of it is free, in bytes; 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        return sizes["MemTotal"], sizes["MemAvailable"]
    except (OSError, KeyError, IndexError, ValueError):
        return 0, 0
