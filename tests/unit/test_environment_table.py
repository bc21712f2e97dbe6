"""docs/environment.md lists every environment variable that is read, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "environment.md"
PLACES = ("predsession", "scripts", "tests", "benchmarks", "examples")
NAME = re.compile(r"[A-Z][A-Z0-9_]+")
IN_SHELL = re.compile(r"\$\{?([A-Z][A-Z0-9_]+)")
SHELLS_OWN = {"BASH_SOURCE", "HOME", "CI"}

PASSED_ON = {"PATH", "LD_LIBRARY_PATH"}
"""Of the system: read only to be handed to processes that tests start."""
OTHERS = {
    "http_proxy": "requests", "https_proxy": "requests", "all_proxy": "requests", "no_proxy": "requests",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": "gRPC", "grpc_proxy": "gRPC",
    "no_grpc_proxy": "gRPC", "TMPDIR": "Python", "HOME": "Python", "PIP_EXTRA_INDEX_URL": "pip",
}  # fmt: skip
"""What libraries read, and users of ours should know of; no line of ours names most of them."""


def rows(heading: str) -> dict[str, list[str]]:
    """Return the table below a heading: the first column's name, and the others."""
    _, found, rest = DOCUMENT.read_text("utf-8").partition(f"## {heading}\n")
    assert found, heading
    lines = [line.strip("| \n").split(" | ") for line in rest.partition("\n## ")[0].splitlines()
             if line.startswith("| `")]  # fmt: skip
    assert len({line[0] for line in lines}) == len(lines)
    return {line[0].strip("`"): line[1:] for line in lines}


def _texts(tree: ast.AST) -> dict[str, list[str]]:
    """Return the names of constants that hold texts, or tables of texts."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts = [each.value for each in ast.walk(node.value)
                     if isinstance(each, ast.Constant) and isinstance(each.value, str)]  # fmt: skip
            found[node.targets[0].id] = texts
    return found


def _is_environment(node: ast.AST) -> bool:
    """Whether an expression is the environment: `os.environ`, or a copy under the name `env`."""
    return ast.unparse(node) in {"os.environ", "env", "environ"}


def _asked(node: ast.AST) -> ast.expr | None:
    """Return the name that is asked for, None where nothing is asked of the environment."""
    match node:
        case ast.Call(func=ast.Attribute(value=who, attr="get" | "setdefault" | "pop"), args=[name, *_]):
            return name if _is_environment(who) else None
        case ast.Call(func=ast.Attribute(attr="getenv"), args=[name, *_]):
            return name
        case ast.Subscript(value=who, slice=name, ctx=ast.Load()):
            return name if _is_environment(who) else None
        case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[who]):
            return name if _is_environment(who) else None
    return None


def _read_in(path: Path, text: str, shared: dict[str, list[str]]) -> Iterator[str]:
    """Yield each variable that a file reads."""
    if path.suffix != ".py":
        yield from set(IN_SHELL.findall(text)) - SHELLS_OWN
        return
    tree = ast.parse(text)
    own = {name: texts for name, texts in _texts(tree).items() if re.search(r"VARIABLES?$", name)}
    for node in ast.walk(tree):
        name = _asked(node)
        if isinstance(name, ast.Constant):
            yield str(name.value)
        elif isinstance(name, ast.Name) and name.id.isupper():
            yield from own.get(name.id) or shared[name.id]
        elif isinstance(name, ast.Name) and name.id == "variable":  # of a table of them
            yield from (each for each in own["VARIABLES"] if NAME.fullmatch(each))


@cache
def read() -> dict[str, set[str]]:
    """Return each variable that is read, with the folders in which it is."""
    there = [path for place in PLACES for path in sorted((ROOT / place).rglob("*")) if path.is_file()]
    files = [path for path in there if path.suffix in {"", ".py"} and path != Path(__file__)]
    # Somebody else's variables are in two of them; and most need not be parsed.
    texts = {path: path.read_text("utf-8") for path in files
             if "theirs" not in path.parts and path.name != "supervisely_server.py"}  # fmt: skip
    texts = {
        path: text for path, text in texts.items() if not path.suffix or re.search("environ|_VARIABLE", text)
    }
    shared: dict[str, list[str]] = {}
    for path, text in texts.items():
        if path.suffix:
            found = _texts(ast.parse(text)).items()
            shared.update({name: values for name, values in found if name.endswith("_VARIABLE")})
    places: dict[str, set[str]] = {}
    for path, text in texts.items():
        for name in set(_read_in(path, text, shared)) - PASSED_ON:
            places.setdefault(name, set()).add(path.relative_to(ROOT).parts[0])
    return places


def test_each_variable_that_is_read_is_in_the_table_and_no_other() -> None:
    """Both ways: what is missing, and what is there no more."""
    there = {*rows("Of the package"), *rows("Of the scripts and the tests"), *rows("Of others")}
    found = read()
    assert "PREDSESSION_URL" in found  # the search finds constants
    assert "PREDSESSION_INTEROP_MLSERVER" in found  # and tables of them
    assert sorted(set(found) - there) == []
    assert sorted(there - set(found) - set(OTHERS)) == []


def test_who_reads_it_is_right() -> None:
    """The table's second column names each folder in which the variable is read."""
    found = read()
    for heading in ("Of the package", "Of the scripts and the tests"):
        for name, columns in rows(heading).items():
            assert name in found, name
            named = {place for place in PLACES if f"`{place}/" in columns[1]}
            assert named == found[name], name
            assert ("predsession" in named) is (heading == "Of the package"), name


def test_others_variables() -> None:
    """Each is said to be of the library that reads it."""
    table = rows("Of others")
    for name, library in OTHERS.items():
        assert library in table[name][1], name


def test_each_is_what_it_is_called() -> None:
    """A name of ours begins with the package's, except where somebody else's wire or tool fixed it."""
    theirs = {"AI_RUNTIME_ENDPOINT", "AIPC_HOST_PREFIX", "API_TOKEN"}
    outside = {name for name in rows("Of the package") if not name.startswith("PREDSESSION_")}
    assert outside == theirs
