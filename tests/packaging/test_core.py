"""The core without extras: a whole client, in a bare environment, from another folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from package_kit import ROOT, VERSIONS, Environment, Packages, extras_of, interpreters, table

from predsession import __version__

HEAVY = (
    "starlette", "uvicorn", "python_multipart", "onnxruntime", "scipy", "av", "grpc", "google.protobuf",
    "ml_dtypes", "pyarrow", "lance", "pandas", "matplotlib", "confluent_kafka", "supervision", "cv2",
)  # fmt: skip
"""Modules of the extras; none is ever imported, nor installed."""

WALK = """
import argparse
from predsession.cli import _parser
def walk(parser, words):
    print(*words)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                walk(inner, [*words, name])
walk(_parser(), [])
"""

SESSION = """
import asyncio, io, sys
import numpy as np
from PIL import Image
from predsession import PredictionSession, connect
from predsession.testing import number_picture, box_number

url, photos = sys.argv[1:]
buffer = io.BytesIO()
Image.fromarray(number_picture(2)).save(buffer, "PNG")
mixed = [number_picture(0), Image.fromarray(number_picture(1)), buffer.getvalue(), f"{photos}/im_0.png"]
with PredictionSession(url, mixed) as session:
    print([box_number(prediction.boxes[0]) for prediction in session])
    print(session.report().predictions)

async def later():
    async with PredictionSession(url, photos, on_error="skip") as session:
        return [box_number(prediction.boxes[0]) async for prediction in session]

print(asyncio.run(later()))
model = connect(url)
picture = model.predict_one(number_picture(5)).visualize(image=number_picture(5))
print(picture.shape == number_picture(5).shape)
model.close()
heavy = sorted(set(%r) & set(sys.modules))
print("heavy", *heavy)
""" % (list(HEAVY),)  # noqa: UP031 - the text is full of braces

PREDICT = """
import sys
from predsession.cli import main
code = main(sys.argv[1:])
print("heavy", *sorted(set(%r) & set(sys.modules)), file=sys.stderr)
sys.exit(code)
""" % (list(HEAVY),)  # noqa: UP031 - as above


@pytest.fixture(scope="session", params=["wheel", "sdist"])
def bare(request: pytest.FixtureRequest, packages: Packages) -> Environment:
    """The core, from the wheel and from the sdist."""
    if request.param == "wheel":
        made: Environment = request.getfixturevalue("core")
        return made
    return packages.install("core-of-the-sdist", packages.sdist)


def smoke(bare: Environment, server: str, photos: Path) -> None:
    """Import, command line, a whole run, a session."""
    assert bare.code("import predsession; print(predsession.__version__)") == __version__
    assert str(bare.packages) in bare.code("import predsession; print(predsession.__file__)")
    for words in ([bare.command], [bare.python, "-m", "predsession"]):
        done = bare.run(*words, "--version")
        assert (done.returncode, done.stdout) == (0, f"predsession {__version__}\n"), done
    out = bare.place / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = bare.run(bare.python, "-W", "error", "-c", PREDICT, "predict", photos, "--url", server, "--json",
                    "--out", out / "preds.jsonl", "--save-images", out / "drawn", "--quiet")  # fmt: skip
    assert done.returncode == 1, done.stderr  # one of the four is no image
    assert done.stderr.splitlines()[-1] == "heavy"
    for lines in (done.stdout.splitlines(), (out / "preds.jsonl").read_text().splitlines()):
        found = [json.loads(line) for line in lines]
        assert ["error" in each for each in found] == [False, False, False, True]
    assert sorted(path.name for path in (out / "drawn").rglob("*.*")) == ["im_0.png", "im_1.png", "im_2.png"]
    (bare.place / "session.py").write_text(SESSION)
    done = bare.run(bare.python, "-W", "error", "session.py", server, photos)
    assert done.stdout.splitlines() == ["[0, 1, 2, 0]", "4", "[0, 1, 2]", "True", "heavy"], done.stderr


def test_it_works(bare: Environment, server: str, photos: Path) -> None:
    """From the wheel and from the sdist."""
    smoke(bare, server, photos)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_python(packages: Packages, version: str, server: str, photos: Path) -> None:
    """Each Python that is on the PATH, or was handed in with --python."""
    python = interpreters()[version]
    if python is None:
        pytest.skip(
            f"python{version} is not on the PATH, or does not run; scripts/package --python FILE hands it in"
        )
    smoke(packages.install(f"python{version}", packages.wheel, python=python), server, photos)


def test_every_command_has_help(core: Environment) -> None:
    """`--help` of each command needs no extra, and `serve` shows its options without its libraries."""
    commands = core.code(WALK).splitlines()
    assert "doctor" in commands
    assert "tensor infer" in commands
    for words in commands:
        done = core.predsession(*words.split(), "--help")
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout.startswith("usage: predsession"), words


def test_the_dependencies_are_those_that_are_told(core: Environment) -> None:
    """The core's direct dependencies, and all that is installed with them, are docs/install.md's."""
    assert sorted(extras_of(core)[""]) == sorted(
        f"{name}{columns[0]}" for name, columns in table("The core").items()
    )
    told = {name.lower() for columns in table("The core").values() for name in columns[2].split(", ") if name}
    assert set(core.installed()) == {"predsession", *table("The core"), *told} - {"-"}


def test_no_library_of_an_extra_is_installed(core: Environment) -> None:
    """Nothing that the core installs is a library of an extra."""
    found = core.code(
        f"import importlib.util as u\nprint([n for n in {HEAVY!r} if '.' not in n and u.find_spec(n)])"
    )
    assert found == "[]"


def test_every_module_of_the_core_imports(core: Environment) -> None:
    """`from predsession import *`, and the rooms that users import from, ask for nothing heavy."""
    core.code(
        "from predsession import *\nimport predsession.testing, predsession.doctor, predsession.edge\n"
        f"import predsession.tensor, predsession.stream, sys\nassert not set({HEAVY!r}) & set(sys.modules)"
    )


MISSING = {
    "serve": (["serve"], "server"),
    "a server of its own": (["predict", "photos"], "server"),
    "a video": (["predict", "clip.mp4", "--url", "URL", "--num-frames", "2"], "video"),
    "a video of the result": (["predict", "clip.mp4", "--url", "URL", "--save-video", "out.mp4"], "video"),
    "Parquet": (["predict", "photos", "--url", "URL", "--out", "preds.parquet"], "parquet"),
    "edge": (["edge", "stats", "--endpoint", "127.0.0.1:1"], "edge"),
    "edge infer": (["edge", "infer", "photos", "--model", "m", "--endpoint", "127.0.0.1:1"], "edge"),
    "tensor": (["tensor", "info", "grpc://127.0.0.1:1"], "tensor"),
    "stream": (["stream", "photos", "--url", "URL", "--store", "results.lance"], "stream"),
    "results": (["results", "show", "results.parquet"], "stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_what_needs_an_extra_names_it(core: Environment, server: str, photos: Path, name: str) -> None:
    """A sentence with the line to type, exit code 2, and no traceback."""
    shutil.copy(ROOT / "tests" / "samples" / "pedestrians.mp4", core.place / "clip.mp4")
    words, extra = MISSING[name]
    done = core.predsession(*(server if word == "URL" else word for word in words))
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert f"pip install 'predsession[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_in_python(core: Environment, photos: Path) -> None:
    """MissingExtraError, which is an ImportError, and has the extra's name as a field."""
    cases = {
        "from predsession import PredictionSession as P; P(input='photos')": "server",
        "from predsession.testing import RunningServer as R; R()": "server",
        "from predsession.edge import InferenceClient": "edge",
        "from predsession.tensor import TensorSession": "tensor",
        "from predsession.stream import StreamSession": "stream",
        "from predsession.stream import KafkaSource": "kafka",
        "import predsession as p; p.Prediction.from_arrays(size=(9, 9)).to_pandas()": "pandas",
        "import predsession as p; p.Prediction.from_arrays(size=(9, 9)).to_supervision()": "supervision",
        "import predsession.plots as p; p.scores([])": "plot",
    }  # fmt: skip
    for text, extra in cases.items():
        lines = [
            "from predsession import MissingExtraError",
            "try:",
            f"    {text}",
            "except MissingExtraError as error:",
            "    print(error.extra, isinstance(error, ImportError))",
        ]
        assert core.code("\n".join(lines)) == f"{extra} True", text


def test_completion_and_doctor(core: Environment, server: str) -> None:
    """Both are of the core."""
    for shell in ("bash", "fish", "zsh"):
        assert "predsession" in core.predsession("completion", shell).stdout
    done = core.predsession("doctor", server)
    assert done.returncode == 0, done.stdout
