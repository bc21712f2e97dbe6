"""Progress bars: bytes, then items; always closed; in a pipe as well."""

from __future__ import annotations

import io

import pytest
from tqdm import tqdm
from tqdm.auto import tqdm as auto_tqdm

from predsession.progress import CountBar, NoProgress, SessionProgress, TqdmProgress


def state(taken: int, sent: int = 0) -> SessionProgress:
    """Return a state in which so many items were taken and so many bytes sent."""
    return SessionProgress(
        done=taken, total=5, stage="Running inference...", taken=taken, bytes_sent=sent, bytes_total=2000
    )


def run(progress: TqdmProgress) -> None:
    """Show a whole run."""
    progress.update(state(0, 1000))
    for taken in range(1, 6):
        progress.update(state(taken, 2000))
    progress.close()
    progress.close()


def test_the_bar_counts_bytes_then_items() -> None:
    """One bar; the totals are known; it is closed at the end."""
    text = io.StringIO()
    bars = []

    def make(**options: object) -> tqdm:
        bars.append(tqdm(**{**options, "file": text, "mininterval": 0}))
        return bars[-1]

    run(TqdmProgress(make, desc="photos"))
    (bar,) = bars
    shown = text.getvalue()
    assert "1.00k/2.00k" in shown
    assert "5/5" in shown
    assert "img/s" in shown
    assert shown.endswith("\n"), "a closed bar ends its line"
    assert bar.disable


def test_a_bar_that_was_handed_in_is_left_open() -> None:
    """It counts items only; whoever opened it closes it."""
    bar = tqdm(total=100, file=io.StringIO())
    run(TqdmProgress(bar))
    assert bar.n == 5
    assert not bar.disable
    bar.close()


def test_a_class_is_asked_for_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """`tqdm=tqdm.tqdm` works as well as the default."""
    run(TqdmProgress(tqdm, desc="photos"))
    run(TqdmProgress(auto_tqdm))
    run(TqdmProgress())
    assert capsys.readouterr().err.count("5/5") >= 3
    assert capsys.readouterr().out == ""


def test_no_progress_does_nothing() -> None:
    """And may be closed twice."""
    progress = NoProgress()
    progress.update(state(1))
    progress.close()
    progress.close()


class Full(io.StringIO):
    """A file on a disk that is full."""

    def write(self, _text: str) -> int:
        """Fail."""
        raise OSError("No space left on device")


def test_a_bar_that_cannot_be_drawn_ends_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says so, once, and nobody else is concerned."""
    monkeypatch.setattr("sys.stderr", Full())
    run(TqdmProgress())
    count = CountBar("rows")
    count.show(3)
    count.close()
    monkeypatch.undo()
    assert ["No space left on device" in each.getMessage() for each in caplog.records] == [True, True]


def test_without_standard_error_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a service without one, or where it was closed."""
    monkeypatch.setattr("sys.stderr", None)
    progress = TqdmProgress()
    run(progress)
    assert progress.bar is None
    count = CountBar("rows")
    count.show(3)
    count.close()
