"""The models of the command line: each a name and a target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from predsession.server.config import ModelSpec
from predsession.server.folders import USAGE, CommandError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def model_specs(words: Sequence[str], option: str = "--model") -> tuple[ModelSpec, ...]:
    """Read the models of the command line.

    Parameters
    ----------
    words : sequence of str
        Each ``target`` or ``name=target``.
    option : str
        Where they come from, for the message.

    Returns
    -------
    tuple of ModelSpec
        In order; the bundled detector where there are none.

    Raises
    ------
    CommandError
        If two have the same name.
    """
    specs = [_spec(word) for word in words or ["detect"]]
    names = [spec.name for spec in specs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CommandError(f"two models are called {twice}; give them names: {option} NAME={twice}", USAGE)
    return tuple(specs)


def _spec(word: str) -> ModelSpec:
    """Read one model; without a name it is called after the last part of its target."""
    name, equals, target = word.partition("=")
    if equals and _NAME.fullmatch(name):
        return ModelSpec(name, target)
    path, _, attribute = word.rpartition(":")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", attribute if path else Path(word).stem).strip("-.")
    return ModelSpec(plain or "model", word)
