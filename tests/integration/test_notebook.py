"""Sessions and predictions in a real notebook kernel: what is shown, and what an interrupt leaves behind."""

from __future__ import annotations

import base64
import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import requests
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from predsession.testing import RunningServer

SAMPLES = Path(__file__).parents[1] / "samples"
EXAMPLES = Path(__file__).parents[2] / "examples" / "notebooks"
CHROMIUM = shutil.which("chromium") or ""
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

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


def execute_example(name: str, url: str) -> nbformat.NotebookNode:
    """Run an example in its own folder; return it with its outputs."""
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is shipped without outputs"
    NotebookClient(
        notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": EXAMPLES}}
    ).execute(env={**os.environ, "PREDSESSION_URL": url})
    return notebook


def outputs_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the outputs of all cells."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def look_at(notebook: nbformat.NotebookNode, page: Page) -> None:
    """Open a notebook as a page, with nothing from elsewhere: all pictures are there, nothing sticks out."""
    page.route("http*://**", lambda route: route.abort())
    page.set_content(HTMLExporter().from_notebook_node(notebook)[0], wait_until="domcontentloaded")
    pictures = page.locator(".jp-RenderedHTMLCommon figure img")
    assert pictures.count() == 8
    assert pictures.evaluate_all("all => all.every(one => one.complete && one.naturalWidth > 100)")
    wide = page.locator(".jp-OutputArea-output").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    )
    assert wide == []


def shown(outputs: list[nbformat.NotebookNode], kind: str) -> list[str]:
    """Return the outputs of a kind."""
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


@pytest.mark.parametrize("widgets", [True, False])
def test_a_session_in_a_notebook(detector: str, widgets: bool) -> None:
    """The bar is a widget, or text where ipywidgets is missing; a prediction shows itself."""
    hide = "" if widgets else "import sys; sys.modules['ipywidgets'] = None"
    outputs = execute(hide, RUN.format(url=detector, photo=str(SAMPLES / "astronaut.jpg")))
    text = "".join(output.get("text", "") for output in outputs)
    assert bool(shown(outputs, "application/vnd.jupyter.widget-view+json")) is widgets
    if not widgets:
        assert "3/3" in text
    (page,) = shown(outputs, "text/html")
    assert "person" in page
    assert "data:image/" in page


def test_async_for_in_a_notebook(detector: str) -> None:
    """At the top level of a cell, in the loop that the kernel runs."""
    cell = f"""
from predsession import PredictionSession
async with PredictionSession({detector!r}, [{str(SAMPLES / "astronaut.jpg")!r}] * 3) as session:
    print(len([prediction async for prediction in session]))
"""
    assert [output.text for output in execute(cell)] == ["3\n"]


def test_the_folder_notebook(detector: str) -> None:
    """The session, the grid, a prediction and the table are shown, and both plots are one picture."""
    notebook = execute_example("folder.ipynb", detector)
    outputs = outputs_of(notebook)
    session, together, one, table = shown(outputs, "text/html")
    assert "4 of 4 taken" in session
    assert together.count("data:image/jpeg") == 4
    assert one.count("data:image/jpeg") == 1
    for page in (session, together, one, table):
        assert "person" in page
    (plot,) = shown(outputs, "image/png")
    assert Image.open(io.BytesIO(base64.b64decode(plot))).width > 600
    if CHROMIUM:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            look_at(notebook, browser.new_page(viewport={"width": 900, "height": 700}))
            browser.close()


def test_the_video_notebook(detector: str) -> None:
    """It finds tracks, shows frames, and plots counts and ways."""
    outputs = outputs_of(execute_example("video.ipynb", detector))
    frames, tracks = next(eval(each) for each in shown(outputs, "text/plain") if each.startswith("("))
    assert frames == 120
    assert 3 <= tracks <= 40
    session, together, one = shown(outputs, "text/html")
    assert "120 of 120 taken" in session
    assert "frame 90" in together
    assert ">track<" in one
    assert len(shown(outputs, "image/png")) == 2


# -- interrupts ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """A server that no other test leaves a job on: some kill their clients, whose jobs live on a while."""
    with RunningServer("pixels") as server:
        yield server.url


class Kernel:
    """A kernel whose cells can be interrupted."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient, *, widgets: bool) -> None:
        self.widgets = widgets
        self._manager = manager
        self._client = client

    def run(
        self, cell: str, *, interrupt_at: str = "", again_after: float | None = None
    ) -> list[tuple[str, dict[str, Any]]]:
        """Run a cell, interrupt it once it has printed something; return the messages until it is idle."""
        asked, messages = self._client.execute(cell), list[tuple[str, dict[str, Any]]]()
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            messages.append((kind, content))
            if kind == "status" and content["execution_state"] == "idle":
                return messages
            if interrupt_at and interrupt_at in content.get("text", ""):
                self._manager.interrupt_kernel()
                if again_after is not None:
                    time.sleep(again_after)
                    self._manager.interrupt_kernel()
                interrupt_at = ""

    def text(self, messages: list[tuple[str, dict[str, Any]]], name: str) -> str:
        """Return what a cell wrote to a stream."""
        return "".join(
            content["text"] for kind, content in messages if kind == "stream" and content["name"] == name
        )


@pytest.fixture(scope="module")
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """One with widgets, one without."""
    manager, client = start_new_kernel()
    made = Kernel(manager, client, widgets=request.param == "widgets")
    made.run("" if made.widgets else "import sys; sys.modules['ipywidgets'] = None")
    # What tqdm says about missing widgets, it says here.
    made.run("import asyncio, time, tqdm.auto\nfrom predsession import PredictionSession")
    yield made
    client.stop_channels()
    manager.shutdown_kernel(now=True)


LOOPS = {
    "waiting": "for p in session: print('GO') if p.index == 2 else None",
    "in the body": "for p in session:\n    print('GO') if p.index == 2 else None\n    time.sleep(0.3)",
    "async": "async for p in session: print('GO') if p.index == 2 else None",
    "async, in the body": (
        "async for p in session:\n    print('GO') if p.index == 2 else None\n    await asyncio.sleep(0.3)"
    ),
}


PAIRS = [("text", loop) for loop in LOOPS] + [("widgets", "in the body")]  # what closes the bar is the same


@pytest.mark.parametrize(("kernel", "loop"), PAIRS, indirect=["kernel"])
def test_an_interrupted_cell_leaves_nothing_behind(
    kernel: Kernel, ours: str, numbered: Callable[..., list[Path]], loop: str
) -> None:
    """Wherever the interrupt comes: no job on the server, a bar that is ended, and the notebook goes on.

    Nothing here closes the session: the cell has no ``with``.
    """
    folder = str(numbered(60)[0].parent)
    begin = f"session = PredictionSession({ours!r}, {folder!r}, show_progress=True, delay=0.1)\n"
    messages = kernel.run(begin + LOOPS[loop], interrupt_at="GO")
    names = [content["ename"] for kind, content in messages if kind == "error"]
    assert names in (["KeyboardInterrupt"], ["CancelledError"])
    bar = kernel.text(messages, "stderr")
    if kernel.widgets:
        states = [content["data"].get("state", {}) for kind, content in messages if kind == "comm_msg"]
        assert states[-1] == {"bar_style": "danger"}
        assert not bar
    else:
        assert bar.endswith("\n")
        assert bar.count("\n") == 1
    until = time.monotonic() + 30
    while requests.post(f"{ours}/list_inference_requests", json={"state": {}}, timeout=10).json()["requests"]:
        assert time.monotonic() < until, "a job is left on the server"
        time.sleep(0.05)
    after = kernel.run("print(session.status().closed, 'interrupted' in session._repr_html_(), 1 + 1)")
    assert kernel.text(after, "stdout") == "True True 2\n"
    again = kernel.run(f"print(len(list(PredictionSession({ours!r}, {folder!r}))))")
    assert kernel.text(again, "stdout") == "60\n"


@pytest.mark.parametrize("kernel", ["text"], indirect=True)
def test_an_interrupt_leaves_other_sessions_alone(
    kernel: Kernel, ours: str, numbered: Callable[..., list[Path]]
) -> None:
    """A session that the interrupted cell did not iterate is open, and goes on where it was."""
    folder = str(numbered(6)[0].parent)
    kernel.run(f"session = PredictionSession({ours!r}, {folder!r})\nfirst = session.next()")
    kernel.run("print('GO')\ntime.sleep(30)", interrupt_at="GO")
    after = kernel.run("print([p.index for p in session])")
    assert kernel.text(after, "stdout") == "[1, 2, 3, 4, 5]\n"


@pytest.mark.parametrize("kernel", ["text"], indirect=True)
def test_an_interrupt_leaves_embedded_servers_alone(
    kernel: Kernel, numbered: Callable[..., list[Path]]
) -> None:
    """It goes to the kernel's whole group, to which a server that was started there does not belong."""
    folder = str(numbered(9)[0].parent)
    kernel.run("from predsession.testing import RunningServer\nserver = RunningServer('pixels')")
    kernel.run("print('GO')\ntime.sleep(30)", interrupt_at="GO")
    after = kernel.run(f"print(len(list(PredictionSession(server.url, {folder!r}))))")
    assert kernel.text(after, "stdout") == "9\n"
    kernel.run("server.close()")


@pytest.mark.parametrize("kernel", ["text"], indirect=True)
def test_an_interrupt_pressed_twice_leaves_nothing_behind(
    kernel: Kernel, ours: str, numbered: Callable[..., list[Path]]
) -> None:
    """Several sessions in one cell: all are closed, and nothing fails."""
    folder = str(numbered(9)[0].parent)
    ended = kernel.run(
        f"sessions = [PredictionSession({ours!r}, {folder!r}, delay=0.1) for _ in range(3)]\n"
        "firsts = [next(each) for each in sessions]\nprint('GO')\ntime.sleep(30)",
        interrupt_at="GO",
        again_after=0.015,
    )
    assert "Error in callback" not in kernel.text(ended, "stdout")
    after = kernel.run("print([each.status().closed for each in sessions])")
    assert kernel.text(after, "stdout") == f"{[True] * 3}\n"


@pytest.mark.parametrize("kernel", ["text"], indirect=True)
def test_a_task_of_an_earlier_cell_goes_on(
    kernel: Kernel, ours: str, numbered: Callable[..., list[Path]]
) -> None:
    """It iterates while another cell awaits, and is interrupted: it is not that cell's."""
    folder = str(numbered(20)[0].parent)
    kernel.run(
        f"session, seen = PredictionSession({ours!r}, {folder!r}), []\n"
        "async def consume():\n    async for p in session:\n        seen.append(p.index)\n"
        "        await asyncio.sleep(0.03)\n"
        "task = asyncio.create_task(consume())"
    )
    kernel.run("await asyncio.sleep(0.1)\nprint('GO')\nawait asyncio.sleep(30)", interrupt_at="GO")
    after = kernel.run("await task\nprint(seen == list(range(20)))")
    assert kernel.text(after, "stdout") == "True\n"


@pytest.mark.parametrize("kernel", ["text"], indirect=True)
def test_a_script_that_is_interrupted(
    kernel: Kernel, ours: str, numbered: Callable[..., list[Path]], tmp_path: Path
) -> None:
    """%run shows the interrupt itself, and ends without one; its session is closed all the same."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import time\nfrom predsession import PredictionSession\n"
        f"session = PredictionSession({ours!r}, {str(numbered(6)[0].parent)!r})\n"
        "first = next(session)\nprint('GO', flush=True)\ntime.sleep(30)\n"
    )
    kernel.run(f"%run {script}", interrupt_at="GO")
    after = kernel.run("print(session.status().closed)")
    assert kernel.text(after, "stdout") == "True\n"
