"""Models: the bundled ones see what they were seen to see, a user's own are served and survived."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_kit import Caller, Server, numbers, png, until

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"

TEN_LINES = """
import numpy as np

class Brightest:
    classes = ["brightest"]
    default_settings = {"conf": 0.0, "side": 10, "word": "a"}
    def predict(self, images, settings):
        results = []
        for image in images:
            y, x = np.unravel_index(image.sum(axis=2).argmax(), image.shape[:2])
            results.append({"boxes": [[x, y, x + settings["side"], y + 1]], "scores": [image.max() / 255]})
        return results
"""

WILD = '''
import os, time
import numpy as np

class Wild:
    """Does what the setting says, for every picture but a black one."""
    classes = ["a", "b"]
    max_batch_size = 4
    tags = ["mood"]
    default_settings = {"do": "well"}
    def predict(self, images, settings):
        print("what a model prints belongs to the log")
        results = [self.one(image, settings["do"]) for image in images]
        return results[:-1] if settings["do"] == "too few" else results
    def one(self, image, what):
        box = [[1.0, 1.0, 5.0, 5.0]]
        good = {"boxes": box, "scores": [0.5], "class_ids": [1], "tags": {"mood": "fine"}}
        if not image.any():
            return good
        if what == "raise": raise RuntimeError("I will not")
        if what == "exit": os._exit(3)
        if what == "hang": time.sleep(3600)
        if what == "nan": return {**good, "scores": [float("nan")]}
        if what == "nan box": return {**good, "boxes": [[1.0, 1.0, float("inf"), 5.0]]}
        if what == "outside": return {**good, "boxes": [[500.0, 1.0, 600.0, 5.0]]}
        if what == "backwards": return {**good, "boxes": [[5.0, 1.0, 1.0, 5.0]]}
        if what == "no class": return {**good, "class_ids": [2]}
        if what == "shapes": return {**good, "scores": [0.5, 0.6]}
        if what == "unknown": return {**good, "labels": [1]}
        if what == "tag": return {**good, "tags": {"colour": "red"}}
        if what == "list": return [box]
        return good
'''

PREDICTIONS = """
import numpy as np
from predsession import Prediction

def make_model():
    return Model()

class Model:
    classes = ["thing"]
    shape = "bitmap"
    def load(self):
        self.loaded = True
    def predict(self, images, settings):
        mask = np.zeros((1, 32, 64), bool)
        mask[0, 4:8, 10:20] = self.loaded
        return [Prediction.from_arrays(size=(64, 32), masks=mask, scores=[0.25], classes=["thing"])
                for image in images]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with users' models in it."""
    place = tmp_path_factory.mktemp("models")
    for name, text in (("ten_lines", TEN_LINES), ("wild", WILD), ("predictions", PREDICTIONS)):
        (place / f"{name}.py").write_text(text)
    return place


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Several models by name on one server; the first is the usual one."""
    models = ("wild=wild.py:Wild", "ten=ten_lines.py:Brightest", "mine=predictions.py:make_model", "pixels")
    words = [word for model in models for word in ("--model", model.replace("=", f"={folder}/"))]
    words[-1] = "pixels"
    with Server(*words, "--limit-batch", "3") as running:
        yield running


@pytest.fixture
def caller(server: Server) -> Iterator[Caller]:
    """Calls the usual model."""
    with Caller(server.url) as one:
        yield one


def figures(item: dict[str, Any]) -> list[tuple[str, float]]:
    """Return class and score of each object."""
    return [(each["classTitle"], each["tags"][0]["value"]) for each in item["annotation"]["objects"]]


def test_bundled_detector_sees_what_it_was_seen_to_see() -> None:
    """A person, a cat, a table, with the scores that the network has elsewhere; only what is wanted."""
    with Server("detect") as server, Caller(server.url) as caller:
        pictures = [(PHOTOS / name).read_bytes() for name in ("astronaut.jpg", "cat.JPG", "coffee.jpg")]
        best = [figures(item)[0] for item in caller.upload(pictures, endpoint="inference_batch").json()]
        assert [title for title, _ in best] == ["person", "cat", "dining table"]
        assert [score for _, score in best] == pytest.approx([0.73, 0.56, 0.44], abs=0.03)
        wanted = {"settings": {"conf": 0.3, "classes": ["dog"]}}
        (item,) = caller.upload([pictures[1]], endpoint="inference_batch", **wanted).json()
        assert {title for title, _ in figures(item)} == {"dog"}
        (item,) = caller.upload(
            [pictures[1]], endpoint="inference_batch", settings={"confidence": 0.5}
        ).json()
        assert [title for title, _ in figures(item)] == ["cat"]


def test_bundled_segmentation_finds_the_person() -> None:
    """The segmentation answers a bitmap that covers about half of the astronaut's picture."""
    with Server("--model", "segment") as server, Caller(server.url) as caller:
        picture = (PHOTOS / "astronaut.jpg").read_bytes()
        item = caller.upload([picture], endpoint="inference_image").json()
        (figure,) = item["annotation"]["objects"]
        assert (figure["classTitle"], figure["geometryType"]) == ("person", "bitmap")
        x1, y1, x2, y2 = figure["box"]
        size = item["annotation"]["size"]
        assert (x2 - x1) * (y2 - y1) > 0.5 * size["width"] * size["height"]
        assert caller.ask("get_model_meta")["classes"][0]["shape"] == "bitmap"


def test_ten_lines_are_a_model(caller: Caller) -> None:
    """A class with classes and predict is served: its settings published, its one class understood."""
    assert caller.ask("ten/get_custom_inference_settings") == {
        "settings": {"conf": 0.0, "side": 10, "word": "a"}
    }
    item = caller.upload([png(0)], endpoint="ten/inference_image", settings={"side": 3}).json()
    (figure,) = item["annotation"]["objects"]
    assert figure["classTitle"] == "brightest"
    assert figure["box"][2] - figure["box"][0] == 3


def test_predictions_are_results(caller: Caller) -> None:
    """A model may return `Prediction` objects; their masks become bitmaps."""
    item = caller.upload([png(0)], endpoint="mine/inference_image").json()
    (figure,) = item["annotation"]["objects"]
    assert (figure["geometryType"], figure["bitmap"]["origin"], figure["box"]) == (
        "bitmap",
        [10, 4],
        [10, 4, 20, 8],
    )
    assert figures(item) == [("thing", 0.25)]


def test_model_is_chosen_by_prefix_or_deploy(caller: Caller) -> None:
    """A path prefix, or ``deploy`` in the state or the settings, names the model; an unknown one is 404."""
    assert caller.ask("get_session_info")["number_of_classes"] == 2
    assert caller.ask("pixels/get_session_info")["number_of_classes"] == 10
    assert caller.ask("get_session_info", deploy="pixels")["number_of_classes"] == 10
    for arguments in ({"deploy": "pixels"}, {"settings": {"deploy": "pixels"}}):
        assert numbers([caller.upload([png(5)], endpoint="inference_image", **arguments).json()]) == [5]
    reply = caller.post("nope/get_session_info", json={"state": {}})
    assert reply.status_code == 404
    assert "'nope'" in reply.json()["message"]
    uuid = caller.submit([png(8)], endpoint="pixels/inference_batch_async")
    assert numbers(caller.drain(uuid)[0]) == [8], "a job is found by its uuid alone"


@pytest.mark.parametrize(
    ("what", "type_", "words"),
    [
        ("raise", "RuntimeError", "I will not"),
        ("nan", "BadResultError", "scores are not finite"),
        ("nan box", "BadResultError", "boxes are not finite"),
        ("outside", "BadResultError", "outside the picture"),
        ("backwards", "BadResultError", "ends before it begins"),
        ("no class", "BadResultError", "class_ids"),
        ("shapes", "BadResultError", "scores have the shape (2,)"),
        ("unknown", "BadResultError", "unknown fields labels"),
        ("tag", "BadResultError", "'colour'"),
        ("list", "BadResultError", "not a dict"),
        ("too few", "BadResultError", "predict() returned"),
        ("exit", "ModelCrashError", "code 3"),
        ("hang", "ModelCrashError", "no answer for 3 s"),
    ],
)
def test_misbehaviour_is_an_error_of_its_item(caller: Caller, what: str, type_: str, words: str) -> None:
    """Whatever a model does to one picture of a batch is an error of that picture, with the model named; the
    others of the batch get their answers, and the server lives on.
    """
    uuid = caller.submit([BLACK, png(1), BLACK], settings={"do": what}, item_errors=True)
    items, last = caller.read(uuid)
    bad = items if what == "too few" else items[1:2]
    assert {item["error"]["type"] for item in bad} == {type_}
    assert all(words in item["error"]["message"] for item in bad)
    assert all(item["error"]["message"].startswith("model wild: ") for item in bad)
    if what != "too few":
        assert [figures(item) for item in (items[0], items[2])] == [[("b", 0.5)]] * 2
        assert items[0]["annotation"]["tags"] == [{"name": "mood", "value": "fine"}]
    assert last["stage"] == "Finished"
    until(lambda: caller.ask("is_deployed")["deployed"], "the next worker")
    item = caller.upload([BLACK], endpoint="inference_image").json()
    assert figures(item) == [("b", 0.5)]


def test_misbehaviour_ends_the_job_of_a_stock_client(caller: Caller) -> None:
    """Without item errors the job ends with an exception that names the model; what came before is there."""
    items, last = caller.drain(caller.submit([BLACK, png(1)], settings={"do": "exit"}))
    assert [figures(item) for item in items] == [[("b", 0.5)]]
    assert (last["stage"], last["exception"]["type"]) == ("Error", "ModelCrashError")
    reply = caller.upload([png(1)], endpoint="inference_image", settings={"do": "raise"})
    assert reply.status_code == 500
    assert "model wild: I will not" in reply.json()["detail"]["message"]


def test_other_jobs_in_the_batch_of_a_culprit_go_on(caller: Caller) -> None:
    """Two jobs share a batch; the one with the picture that kills the process gets the error."""
    busy = caller.submit([BLACK] * 2, settings={"do": "well"})
    good = [caller.submit([BLACK], settings={"do": "exit"}, item_errors=True) for _ in range(3)]
    bad = caller.submit([png(1)], settings={"do": "exit"}, item_errors=True)
    assert [numbers_or_errors(caller.read(uuid)[0]) for uuid in good] == [["b"]] * 3
    assert numbers_or_errors(caller.read(bad)[0]) == ["ModelCrashError"]
    caller.drain(busy)


def numbers_or_errors(items: list[dict[str, Any]]) -> list[str]:
    """Return the class of each item's first object, or the type of its error."""
    return [item["error"]["type"] if "error" in item else figures(item)[0][0] for item in items]


def test_unknown_settings_are_refused_by_name(caller: Caller) -> None:
    """To our client an unknown setting, a wrong kind and an unknown class are refused; a stock client, which
    sends its own options along, is not bothered.
    """
    cases = {
        "sid": "no setting 'sid'; did you mean 'side'",
        "side": "'side' is 'x'; it must be a number",
        "word": "'word' is 1; it must be a text",
        "classes": "no class 'dog'",
    }
    values = {"sid": 1, "side": "x", "word": 1, "classes": ["dog"]}
    for name, words in cases.items():
        settings = {name: values[name]}
        reply = caller.upload(
            [png(0)], endpoint="ten/inference_batch_async", settings=settings, item_errors=True
        )
        assert reply.status_code == 400, name
        assert words in reply.json()["message"]
    uuid = caller.submit(
        [png(0)], endpoint="ten/inference_batch_async", settings={"recursive": 1, "img_size": 640}
    )
    assert caller.drain(uuid)[1]["stage"] == "Finished"


def test_what_a_model_prints_is_in_the_log(server: Server, caller: Caller) -> None:
    """A model's print goes to the server's log and disturbs nothing."""
    caller.upload([BLACK], endpoint="inference_image")
    until(lambda: "what a model prints belongs to the log" in server.log, "the line")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nosuch", "'nosuch' is no model; a model is one of detect, pixels, segment"),
        ("no_such_module:Model", "cannot import no_such_module"),
        ("no_such_file.py:Model", "there is no file no_such_file.py"),
        ("{folder}/wild.py:Tame", "wild has no Tame"),
        ("{folder}/broken.py:Model", "ZeroDivisionError"),
        ("{folder}/empty.py:Model", "must be a list of names"),
        ("{folder}/empty.py:Deaf", "has no method predict"),
        ("{folder}/empty.py:Odd", "default_settings must be JSON"),
        ("{folder}/none.toml", "cannot read"),
    ],
)
def test_unreadable_model_is_one_line(folder: Path, target: str, words: str) -> None:
    """A model that cannot be found or loaded ends the server with code 2 and a line that says why."""
    (folder / "broken.py").write_text("1 / 0")
    (folder / "empty.py").write_text(
        "class Model:\n classes = 'abc'\n def predict(self, images, settings): ...\n"
        "class Deaf:\n classes = ['a']\n"
        "class Odd:\n classes = ['a']\n default_settings = {'a': object()}\n def predict(self, i, s): ...\n"
    )
    with pytest.raises(RuntimeError, match="ended with 2") as caught:
        Server(target.format(folder=folder))
    assert words in str(caught.value)
    assert "predsession serve: model" in str(caught.value)


def _black() -> bytes:
    """Return a black picture."""
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (64, 32)).save(buffer, "PNG")
    return buffer.getvalue()


BLACK = _black()


MORTAL = '''
import os, pathlib, time
from predsession.server.models.pixels import PixelNumbers, read_number

FOLDER = pathlib.Path(__file__).parent

class Mortal(PixelNumbers):
    """Dies at the number 5, as long as there are lives to lose; loads only while it may."""
    def load(self):
        while (FOLDER / "wait").exists():
            time.sleep(0.02)
        if (FOLDER / "broken").exists():
            raise OSError("broken")
    def predict(self, images, settings):
        lives = sorted(FOLDER.glob("life*"))
        if lives and 5 in [read_number(image) for image in images]:
            lives[0].unlink()
            os.kill(os.getpid(), 9)
        return super().predict(images, settings)
'''


@pytest.mark.parametrize(("lives", "answer"), [(1, 5), (2, "ModelCrashError")])
def test_picture_alone_is_tried_once_more(tmp_path: Path, lives: int, answer: int | str) -> None:
    """One death over a single picture is nobody's fault; a second one is, and the signal is named."""
    (tmp_path / "mortal.py").write_text(MORTAL)
    for number in range(lives):
        (tmp_path / f"life{number}").touch()
    with Server(f"{tmp_path}/mortal.py:Mortal") as server, Caller(server.url) as caller:
        items, _ = caller.read(caller.submit([png(5)], item_errors=True))
        assert numbers(items) == [answer]
        if "error" in items[0]:
            assert items[0]["error"]["message"] == "model Mortal: its process ended (signal 9, SIGKILL)"


def test_problem_is_over_with_the_next_worker(tmp_path: Path) -> None:
    """Why there was no worker is no longer told once there was one again."""
    (tmp_path / "mortal.py").write_text(MORTAL)
    broken, wait = tmp_path / "broken", tmp_path / "wait"

    def message() -> str:
        text: str = caller.ask("get_status")["progress"]["message"]
        return text

    with Server(f"{tmp_path}/mortal.py:Mortal") as server, Caller(server.url) as caller:
        broken.touch()
        os.kill(server.workers()[0], signal.SIGKILL)
        until(lambda: "broken" in message(), "the problem")
        broken.unlink()
        until(lambda: message() == "Ready", "its end")
        wait.touch()
        os.kill(server.workers()[0], signal.SIGKILL)
        until(lambda: message() != "Ready", "the next one")
        assert message() == "Starting again"
        wait.unlink()


BROKEN = {
    "bad.onnx": "no network",
    "bad.toml": 'file = "bad.onnx"\nclasses = ["a"]\n',
    "syntax.py": "x = 1\ndef (\n",
    "slow.py": "import time\nclass Slow:\n    def load(self): time.sleep(3600)\n",
    "quits.py": "import os\nos._exit(7)\n",
    "cert.pem": "no certificate",
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{folder}/bad.toml"], "bad.onnx is no ONNX file that can be opened"),
        (["{folder}/syntax.py:M"], "syntax.py, line 2: invalid syntax"),
        (["{folder}/slow.py:Slow", "--limit-load", "0.5"], "not loaded within 0.5 s; see --limit-load"),
        (["{folder}/quits.py:M"], "its process ended while loading (exit code 7)"),
        (["pixels", "--certfile", "{folder}/cert.pem", "--keyfile", "{folder}/cert.pem"], "no certificate"),
    ],
)
def test_what_cannot_be_started_is_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    """A damaged network, a mistake in a file, a model that takes too long or quits, a certificate that is
    none: one line that says so, and no traceback.
    """
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(RuntimeError, match="ended with 2") as caught:
        Server(*(word.format(folder=tmp_path) for word in words))
    assert said in str(caught.value)
    assert len(str(caught.value).strip().splitlines()) == 1
