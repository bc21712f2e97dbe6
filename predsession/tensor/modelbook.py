"""What the models of a session take and give, by their own names; asked once each."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from predsession.errors import SourceError
from predsession.tensor.door import Door
from predsession.tensor.info import TensorInfo
from predsession.wire.oip.facts import ModelConfig, ModelFacts


class ModelBook:
    """The models of a session.

    Parameters
    ----------
    door : Door
        The server.
    names : mapping of str to str
        Own name to the server's name for it.
    asks : bool
        Whether the server may have models with inputs that can be left out.
    """

    def __init__(self, door: Door, names: Mapping[str, str], *, asks: bool) -> None:
        self._asks = asks
        self._door = door
        self._names = dict(names)
        self._lock = threading.Lock()
        self._facts: dict[str, ModelFacts] = {}
        self._configs: dict[str, ModelConfig] = {}
        for name in self._names:
            self.facts(name)

    @property
    def names(self) -> list[str]:
        """The models' own names."""
        return list(self._names)

    def name_of(self, name: str | None) -> str:
        """Return which model is meant.

        Parameters
        ----------
        name : str or None
            None where there is one only.

        Returns
        -------
        str
            Its own name.

        Raises
        ------
        SourceError
            If that is not clear, or there is no such model.
        """
        listed = ", ".join(map(repr, self._names))
        if name is None:
            if len(self._names) > 1:
                raise SourceError(f"model_name is needed: this session has {listed}")
            return next(iter(self._names))
        if name not in self._names:
            raise SourceError(f"model_name is {name!r}; this session has {listed}")
        return name

    def facts(self, name: str) -> ModelFacts:
        """Return what a model takes and gives.

        Parameters
        ----------
        name : str
            Its own.

        Returns
        -------
        ModelFacts
            With the server's name for it.
        """
        with self._lock:
            if name not in self._facts:
                told = self._door.model(self._names[name])
                theirs = self._names[name]
                self._facts[name] = ModelFacts(
                    theirs, told.versions, told.platform, told.inputs, told.outputs
                )
            return self._facts[name]

    def config(self, name: str) -> ModelConfig:
        """Return how a model is configured.

        Parameters
        ----------
        name : str
            Its own.

        Returns
        -------
        ModelConfig
            Empty where the server does not say.
        """
        theirs = self.facts(name).name
        with self._lock:
            if name not in self._configs:
                self._configs[name] = self._door.config(theirs)
            return self._configs[name]

    def optional(self, name: str) -> frozenset[str]:
        """Return the inputs that a call may leave out.

        Parameters
        ----------
        name : str
            The model's own name.

        Returns
        -------
        frozenset of str
            None of them on our own server, which is not asked.
        """
        return self.config(name).optional if self._asks else frozenset()

    def infos(self, name: str | None, *, outputs: bool) -> dict[str, TensorInfo]:
        """Return what a model takes or gives, with its scales.

        Parameters
        ----------
        name : str or None
            Which.
        outputs : bool
            Whether it is what it gives.

        Returns
        -------
        dict of str to TensorInfo
            By the tensor's name.
        """
        own = self.name_of(name)
        facts, scales = self.facts(own), self.config(own).quantization
        tensors = facts.outputs if outputs else facts.inputs
        return {each.name: TensorInfo(each, scales.get(each.name)) for each in tensors}
