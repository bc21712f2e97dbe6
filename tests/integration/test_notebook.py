"""A session in a real notebook kernel: its bar with and without widgets, its predictions' display."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

SAMPLES = Path(__file__).parents[1] / "samples"

RUN = """
from predsession import PredictionSession
with PredictionSession({url!r}, [{photo!r}] * 3, show_progress=True) as session:
    predictions = list(session)
predictions[0]
"""


def execute(*cells: str) -> list[nbformat.NotebookNode]:
    """Run cells in a kernel; return the outputs of the last."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    outputs: list[nbformat.NotebookNode] = notebook.cells[-1].outputs
    return outputs


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("widgets", [True, False])
def test_a_session_in_a_notebook(detector: str, widgets: bool) -> None:
    """The bar is a widget, or text where ipywidgets is missing; a prediction shows itself."""
    hide = "" if widgets else "import sys; sys.modules['ipywidgets'] = None"
    outputs = execute(hide, RUN.format(url=detector, photo=str(SAMPLES / "astronaut.jpg")))
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    text = "".join(output.get("text", "") for output in outputs)
    assert ("application/vnd.jupyter.widget-view+json" in kinds) is widgets
    if not widgets:
        assert "3/3" in text
    (page,) = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert "person" in page
    assert "data:image/" in page


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_async_for_in_a_notebook(detector: str) -> None:
    """At the top level of a cell, in the loop that the kernel runs."""
    cell = f"""
from predsession import PredictionSession
async with PredictionSession({detector!r}, [{str(SAMPLES / "astronaut.jpg")!r}] * 3) as session:
    print(len([prediction async for prediction in session]))
"""
    assert [output.text for output in execute(cell)] == ["3\n"]
