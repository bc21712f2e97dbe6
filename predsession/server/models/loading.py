"""From a model's name on the command line to a loaded model."""

from __future__ import annotations

from predsession.server.models.base import Model
from predsession.server.models.bundled import BUNDLED
from predsession.server.models.card import ModelLoadError


def load_model(target: str) -> Model:
    """Find a model and load it.

    Parameters
    ----------
    target : str
        The name of a bundled model.

    Returns
    -------
    Model
        Ready to predict.

    Raises
    ------
    ModelLoadError
        If there is no such model, or it cannot be loaded.
    """
    maker = BUNDLED.get(target)
    if maker is None:
        raise ModelLoadError(f"no model {target!r}; there are {', '.join(sorted(BUNDLED))}")
    model = maker()
    load = getattr(model, "load", None)
    if load is not None:
        load()
    return model
