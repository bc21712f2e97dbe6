"""The public API as text: every name of every public module, with its signature, a line each."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

API_FILE = Path(__file__).parent / "samples" / "public_api.txt"
PUBLIC = (
    "predsession",
    "predsession.doctor",
    "predsession.edge",
    "predsession.plots",
    "predsession.stream",
    "predsession.tensor",
    "predsession.testing",
)
"""The modules whose `__all__` is promised."""
BEYOND = {
    "predsession": ("__version__",),  # not in `__all__`: a star import would change the importer's own
    "predsession.export.jsonl": ("JsonlWriter",),
    "predsession.export.video": ("VideoExport",),
    "predsession.testing.fixtures": ("predsession_server", "predsession_stock_server"),
}
"""Names beside those: what the documents import from elsewhere, and what a plugin gives."""
_OWN_HOME = re.compile(
    r"\b(?:predsession|collections\.abc|typing|pathlib|numpy|concurrent\.futures)(?:\.\w+)*\.(?=\w)"
)
_DEFAULT_REPR = re.compile(r" at 0x[0-9a-f]+")


def describe_all() -> str:
    """Return the whole list."""
    names = [(module, importlib.import_module(module).__all__) for module in PUBLIC]
    lines: list[str] = []
    for module, public in [*names, *BEYOND.items()]:
        lines.append(f"# {module}")
        for name in sorted(public):
            lines.extend(describe(name, getattr(importlib.import_module(module), name)))
        lines.append("")
    return "\n".join(lines)


def describe(name: str, thing: object) -> Iterator[str]:
    """Yield the lines of one name."""
    if name == "__version__":
        yield "__version__: str"  # its value is no promise
    elif inspect.isclass(thing):
        yield from _class(name, thing)
    elif callable(thing):
        yield f"{name}{_signature(thing)}"
    else:
        yield f"{name} = {_plain(repr(thing))[:200]}"


def _class(name: str, kind: type) -> Iterator[str]:
    """Yield a class and what it has of its own, or from bases that are not public themselves."""
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if issubclass(kind, enum.Enum):
        yield from (f"    {member.name} = {member.value!r}" for member in kind)
        return
    made_by_users = not getattr(kind, "_is_protocol", False)
    if made_by_users and ("__init__" in _attributes(kind) or hasattr(kind, "_fields")):
        yield f"    {name}{_signature(kind)}"
    fields = {*getattr(kind, "__dataclass_fields__", ()), *getattr(kind, "_fields", ())}
    for attribute, value in sorted(_attributes(kind).items()):
        special = attribute.startswith("__") and attribute in _PROTOCOL
        if (attribute.startswith("_") and not special) or attribute in fields:
            continue
        yield from (f"    {line}" for line in _member(attribute, value))


_PROTOCOL = frozenset({
    "__iter__", "__next__", "__len__", "__bool__", "__getitem__", "__setitem__", "__delitem__",
    "__contains__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__aiter__", "__anext__",
    "__call__", "__array__",
})  # fmt: skip
"""The dunders that are a part of what users write."""


def _attributes(kind: type) -> dict[str, object]:
    """Return what a class and its bases of ours define; others' bases are not ours to promise."""
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("predsession"):
            found.update(vars(base))
    return found


def _member(name: str, value: object) -> Iterator[str]:
    """Yield a method, a property, or a constant of a class."""
    if isinstance(value, property):
        yield f"{name}: {_result(value.fget)}" + (" (may be set)" if value.fset else "")
    elif isinstance(value, classmethod | staticmethod):
        yield f"{type(value).__name__} {name}{_signature(value.__func__)}"
    elif inspect.isfunction(value):
        yield f"{'async ' * inspect.iscoroutinefunction(value)}{name}{_signature(value)}"
    elif hasattr(value, "__get__") and not inspect.isclass(value):
        wrapped = (
            getattr(value, "func", None) or getattr(value, "fget", None) or getattr(value, "_compute", None)
        )
        yield f"{name}: {_result(wrapped)}"
    elif not callable(value):
        yield f"{name} = {_plain(repr(value))[:200]}"


def _result(function: object) -> str:
    """Return what a function returns, as it is written."""
    return _annotation(inspect.signature(function).return_annotation) if callable(function) else "(attribute)"


def _signature(thing: object) -> str:
    """Return a signature as it is written, on one line, without the homes of types."""
    assert callable(thing)
    try:
        signature = inspect.signature(thing)
    except ValueError:  # made in C
        return "(...)"
    words: list[str] = []
    before = inspect.Parameter.POSITIONAL_ONLY
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            words.append("*")
        before = each.kind
        words.append(_parameter(each))
    result = signature.return_annotation
    arrow = "" if result is signature.empty or inspect.isclass(thing) else f" -> {_annotation(result)}"
    return f"({', '.join(words)}){arrow}"


def _parameter(each: inspect.Parameter) -> str:
    """Return one parameter."""
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    kind = "" if each.annotation is each.empty else f": {_annotation(each.annotation)}"
    default = "" if each.default is each.empty else f" = {_plain(repr(each.default))}"
    return f"{stars}{each.name}{kind}{default}"


def _annotation(value: object) -> str:
    """Return an annotation as it is written; most are texts, those of generated methods are objects."""
    text = value if isinstance(value, str) else getattr(value, "__forward_arg__", None)
    return _plain(text if isinstance(text, str) else inspect.formatannotation(value))


def _plain(text: str) -> str:
    """Return a text that is the same on every machine and every Python."""
    return _DEFAULT_REPR.sub("", _OWN_HOME.sub("", text))
