"""Each extra installs beside the core and does its main work; README's lines are run; sizes are as told."""

from __future__ import annotations

import os
import re
import shutil
import sys

import pytest
from package_kit import (
    LARGE_VARIABLE,
    ROOT,
    SIZES_VARIABLE,
    VERSIONS,
    Environment,
    Packages,
    extras_of,
    table,
)  # fmt: skip

WORK = {
    "video": """
from predsession import PredictionSession
from predsession.export.video import VideoExport
try:
    PredictionSession("http://127.0.0.1:1", "clip.mp4", num_frames=2, connect_timeout=0.1)
except OSError as error:
    print(error)
""",
    "server": """
from predsession import PredictionSession
with PredictionSession(input="photos", on_error="skip", conf=0.01) as session:
    assert len(list(session)) == 3
""",
    "edge": """
from predsession.edge import InferenceClient
InferenceClient("127.0.0.1:1").close()
""",
    "tensor": """
from predsession import ConnectError, PredSessionError
from predsession.tensor import TensorSession
try:
    TensorSession("grpc://127.0.0.1:1", models=["net"], server_timeout=0.5)
except (ConnectError, PredSessionError) as error:
    print(error)
""",
    "stream": """
from predsession.stream import IterableSource, StreamSession, open_results
import numpy as np
samples = ({"object_id": str(n), "x": np.full(2, n, "float32")} for n in range(5))
double = lambda batch: {"y": batch["x"] * 2}
with StreamSession(double, IterableSource(samples), store="STORE.lance") as session:
    list(session)
assert len(open_results("STORE.lance")) == 5
""",
    "kafka": "from predsession.stream import KafkaSource; import confluent_kafka, lance",
    "pandas": """
import numpy as np
from predsession import Prediction
found = Prediction.from_arrays(size=(9, 9), boxes=np.ones((2, 4)), class_ids=[0, 0], class_names=["a"])
assert len(found.to_pandas()) == 2
""",
    "plot": "import predsession.plots, matplotlib",
    "parquet": "import predsession.export.parquet, pyarrow.parquet",
    "supervision": """
import numpy as np
from predsession import Prediction
found = Prediction.from_arrays(size=(9, 9), boxes=np.ones((2, 4)), class_ids=[0, 0], class_names=["a"])
assert len(found.to_supervision()) == 2
""",
    "tracking": "import trackers",
}
"""A little work that needs the extra."""
LARGE = {"tracking", "supervision"}
"""Hundreds of MB: with scripts/package --large."""
NOT_FOR_USERS = {"dev", "docs", ""}


@pytest.fixture(scope="session")
def made(packages: Packages) -> dict[str, Environment]:
    """The environments so far, by extra."""
    return {}


def environment_of(extra: str, packages: Packages, made: dict[str, Environment]) -> Environment:
    """Return the environment of an extra, made where it is first wanted."""
    if extra in LARGE and not os.environ.get(LARGE_VARIABLE):
        pytest.skip(f"[{extra}] costs hundreds of MB: scripts/package --large")
    if extra not in made:
        made[extra] = packages.install(f"extra-{extra}", f"{packages.wheel}[{extra}]")
    return made[extra]


def test_each_extra_is_known_here(core: Environment) -> None:
    """A new extra gets a line in WORK above, and a row in docs/install.md."""
    extras = set(extras_of(core)) - NOT_FOR_USERS
    assert extras == set(WORK)
    assert extras == set(table("Extras"))


@pytest.mark.parametrize("extra", WORK)
def test_an_extra_works(
    extra: str, packages: Packages, made: dict[str, Environment], photos: object, core: Environment
) -> None:
    """It installs from the registry, and does a little of its work."""
    if extra not in extras_of(core):
        pytest.skip(f"[{extra}] is no extra")
    environment = environment_of(extra, packages, made)
    shutil.rmtree(environment.place / "STORE.lance", ignore_errors=True)
    done = environment.run(environment.python, "-c", WORK[extra])
    assert done.returncode == 0, done.stderr


def test_the_lines_of_the_readme(packages: Packages, core: Environment) -> None:
    """Each `pip install` line is of an extra that is tried here; `pip install .` installs a clone."""
    lines = re.findall(r"^\$ pip install (\S+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert lines
    extras = {extra for line in lines for extra in re.findall(r"\[([\w,-]+)\]", line)}
    assert {each for extra in extras for each in extra.split(",")} <= set(WORK)
    wanted = [line for line in lines if "[" not in line]
    for line in wanted:
        clone = packages.install("clone", ROOT if line.strip("'") == "." else packages.wheel)
        assert clone.predsession("--version").stdout == core.predsession("--version").stdout


def test_the_sizes_are_as_told(packages: Packages, made: dict[str, Environment], core: Environment) -> None:
    """docs/install.md's sizes hold, within a half: those of libraries change with their releases.

    With --sizes the table's rows are printed as they should be.
    """
    base, told = core.size(), table("Extras")
    own = sum(path.stat().st_size for path in (core.packages / "predsession").rglob("*") if path.is_file())
    files = {"wheel": packages.wheel, "sdist": packages.sdist}
    sizes = {**{name: file.stat().st_size for name, file in files.items()}, "alone": own, "core": base}
    for extra in sorted(set(extras_of(core)) - NOT_FOR_USERS):
        if os.environ.get(SIZES_VARIABLE) and (extra not in LARGE or os.environ.get(LARGE_VARIABLE)):
            environment_of(extra, packages, made)
        if extra in made:
            sizes[extra] = made[extra].size() - base
    if os.environ.get(SIZES_VARIABLE):
        for name, size in sizes.items():
            needs = ", ".join(extras_of(core).get(name, []))
            sys.stdout.write(f"\n| `[{name}]` | {needs} | {size / 1e6:.1f} MB |")
    rows = {**table("The package"), **{name: columns[2:] for name, columns in told.items()}}
    for name, size in sizes.items():
        mb = float(rows[name][0].split()[0])
        assert mb / 1.5 - 1 <= size / 1e6 <= mb * 1.5 + 1, f"{name}: {size / 1e6:.1f} MB"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_core_has_wheels_for_each_python(packages: Packages, version: str) -> None:
    """No dependency of the core must be built by its user: the classifiers are true."""
    done = packages.pip(
        "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--python-version", version,
        "--target", packages.place / "nowhere", packages.wheel,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
