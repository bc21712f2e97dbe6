"""A result of the server's as a prediction: of an item that was sent, or of a picture that the server has."""

from __future__ import annotations

from dataclasses import dataclass, field

from predsession.inputs.items import Item
from predsession.jobs.remote import LibraryLoader, loader_for
from predsession.jobs.shared import Shared
from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSONObject


def predicted(shared: Shared, source: Item, result: JSONObject) -> Prediction:
    """Make the prediction for an item that was sent.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    source : Item
        Gives its name, its place and its picture.
    result : JSON object
        As the server, or a journal, has it.

    Returns
    -------
    Prediction
        Its picture is loaded when it is asked for.

    Raises
    ------
    ProtocolError
        If the result cannot be read.
    """
    return Prediction.from_wire(
        result,
        meta=shared.facts.meta(),
        index=source.index,
        name=source.name,
        path=source.path,
        url=source.url,
        loader=loader_for(source, shared.options.connection),
    )


@dataclass(frozen=True, slots=True)
class Library:
    """The server's own pictures, which a prediction fetches from there.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    endpoint : str
        The server's URL.
    token : str or None
        For the server.
    """

    shared: Shared = field(repr=False)
    endpoint: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def predicted(self, result: JSONObject, *, index: int, name: str = "") -> Prediction:
        """Make the prediction for a picture of the server's.

        Parameters
        ----------
        result : JSON object
            As the server, or a journal, has it; it names the picture.
        index : int
            Where it stands in the source.
        name : str
            What it is called where the result does not say.

        Returns
        -------
        Prediction
            Its picture is fetched by id when it is asked for.

        Raises
        ------
        ProtocolError
            If the result cannot be read.
        """
        connection = self.shared.options.connection
        return Prediction.from_wire(
            result,
            meta=self.shared.facts.meta(),
            index=index,
            name=name,
            path=None,
            url=None,
            loader=LibraryLoader.of(result, self.endpoint, connection, token=self.token),
        )
