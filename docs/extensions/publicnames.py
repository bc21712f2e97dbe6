"""Sphinx: a name in a docstring or a signature leads to where it is public.

Docstrings say `Prediction`, signatures ``predsession.prediction.result.Prediction``; the reference has
``predsession.Prediction``. A parameter or a field leads to the class that has it, or is plain code in the
class's own text. So are names of ours that are not public, if they exist. Anything else is an error.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.inspect import TypeAliasForwardRef

ROOMS = (
    "predsession",
    "predsession.doctor",
    "predsession.edge",
    "predsession.plots",
    "predsession.stream",
    "predsession.tensor",
    "predsession.testing",
)
"""The modules whose ``__all__`` is public."""
ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[([^\[\]]+)\]\]")
COLON = "\N{RATIO}"
"""What stands for the first colon of a property's docstring until napoleon has read it."""


@cache
def homes() -> dict[str, str]:
    """Return the public name of everything that has one, by the name of its home and by its last part."""
    found: dict[str, str] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            public = f"{room}.{name}"
            found.setdefault(name, public)
            found.setdefault(f"{getattr(module, name).__module__}.{name}", public)
    return found


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contents: nodes.TextElement
) -> nodes.Node | None:
    """Find the public name that is meant, or accept a name that needs no link."""
    if node.get("refdomain") != "py":
        return None
    target: str = node["reftarget"].removesuffix("=")
    module, class_ = node.get("py:module") or "", node.get("py:class") or ""
    python = env.domains.python_domain
    for name in candidates(target, module, class_):
        found = python.find_obj(env, "", "", name, None, 0)
        if len(found) == 1:
            refdoc, kind = node["refdoc"], node["reftype"]
            return python.resolve_xref(env, refdoc, app.builder, kind, found[0][0], node, contents)
    return contents if is_parameter(target, module, class_) or exists(target) else None


def candidates(target: str, module: str, class_: str) -> list[str]:
    """Return the names that may be meant, the likeliest first."""
    known = homes()
    owner, _, member = target.rpartition(".")
    public = known.get(owner, owner)
    names = [known.get(target, target), f"{module}.{class_}.{target}", f"{public}.{member}"]
    if target.startswith("predsession."):
        names.append(member)  # JSON, Loader: words that docs/reference/index.md explains
    if owner and is_parameter(member, *public.rpartition(".")[::2]):
        names.append(public)  # Prediction.index, a field
    return names


def is_parameter(target: str, module: str, class_: str) -> bool:
    """Whether a class, a method of it or, without one, a function of the module has such a parameter."""
    place: object = importlib.import_module(module) if module else None
    owner = getattr(place, class_.partition(".")[0], None) if class_ else place
    members = [owner, *(getattr(owner, name, None) for name in dir(owner) if name[:1] != "_")]
    return any(target in parameters(member) for member in members if callable(member))


def parameters(value: object) -> frozenset[str]:
    """Return the names of what a callable takes."""
    try:
        return frozenset(inspect.signature(value).parameters) if callable(value) else frozenset()
    except (TypeError, ValueError):  # of a built-in
        return frozenset()


def exists(target: str) -> bool:
    """Whether it is a full name of ours, public or not."""
    if not target.startswith("predsession."):
        return False
    try:
        pkgutil.resolve_name(target)
    except (ImportError, AttributeError):
        return False
    return True


def hide_colon(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep napoleon from taking what stands before a property's first colon for a type, and so for names."""
    if what in {"attribute", "property", "data"} and lines:
        lines[0] = lines[0].replace(": ", f"{COLON} ", 1)


def show_colon(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Put the colon back."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def shorten(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str, str | None] | None:
    """Write what a reader would: `NDArray[float32]`, and an ellipsis for a default that is made anew."""
    if signature is None:
        return None
    signature = ARRAY.sub(r"NDArray[\1]", signature).replace("<factory>", "...")
    return signature, returned and ARRAY.sub(r"NDArray[\1]", returned)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to Sphinx."""
    TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # as part of a larger type it is written by this
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-docstring", hide_colon, priority=400)
    app.connect("autodoc-process-docstring", show_colon, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
