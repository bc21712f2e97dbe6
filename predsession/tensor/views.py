"""What can be seen of a tensor session: its models, what these take and give, how long calls took."""

from __future__ import annotations

from collections.abc import Mapping

from predsession.errors import SourceError
from predsession.tensor.hosting import ServerHandle
from predsession.tensor.info import TensorInfo, table
from predsession.tensor.modelbook import ModelBook
from predsession.tensor.profile import Meter
from predsession.wire.oip.facts import ServerFacts


class SessionViews:
    """Answers questions; the session fills in what is asked about."""

    _book: ModelBook
    _meters: Mapping[str, Meter]
    _with_profile: bool
    _server: ServerHandle

    @property
    def server_facts(self) -> ServerFacts:
        """What the server is: ``name``, ``version``, ``extensions``."""
        return self._server.facts

    def get_model_names(self) -> list[str]:
        """Return the models' names: not the files'.

        Returns
        -------
        list of str
            In the order in which they were handed in.
        """
        return list(self._book.names)

    def get_model_versions(self, model_name: str | None = None) -> tuple[str, ...]:
        """Return which versions of a model the server has.

        Parameters
        ----------
        model_name : str or None
            Which; needed where the session has several.

        Returns
        -------
        tuple of str
            Empty where the server does not say.

        Raises
        ------
        SourceError
            If there is no such model.
        """
        return self._book.facts(self._book.name_of(model_name)).versions

    def get_input_info(self, model_name: str | None = None) -> dict[str, TensorInfo]:
        """Return what a model takes.

        Parameters
        ----------
        model_name : str or None
            Which; needed where the session has several.

        Returns
        -------
        dict of str to TensorInfo
            ``valid_shape`` (-1 is dynamic), ``tensor_type``, ``quanti_type``, scales.

        Raises
        ------
        SourceError
            If there is no such model.
        """
        return self._book.infos(model_name, outputs=False)

    def get_output_info(self, model_name: str | None = None) -> dict[str, TensorInfo]:
        """Return what a model gives.

        Parameters
        ----------
        model_name : str or None
            Which; needed where the session has several.

        Returns
        -------
        dict of str to TensorInfo
            As above.

        Raises
        ------
        SourceError
            If there is no such model.
        """
        return self._book.infos(model_name, outputs=True)

    def show_input_output_info(self, model_name: str | None = None) -> None:
        """Print what models take and give.

        Parameters
        ----------
        model_name : str or None
            Which; all by default.

        Raises
        ------
        SourceError
            If there is no such model.
        """
        names = self._book.names if model_name is None else [self._book.name_of(model_name)]
        for name in names:
            print(name)  # noqa: T201 - what it is for
            for title, rows in (("input", self.get_input_info(name)), ("output", self.get_output_info(name))):
                print("\n".join(f"  {line}" for line in table(rows, title)))  # noqa: T201

    def get_profile(self, model_name: str | None = None) -> dict[str, dict[str, float]]:
        """Return how long calls took, in milliseconds.

        Parameters
        ----------
        model_name : str or None
            Which; needed where the session has several.

        Returns
        -------
        dict of str to dict
            Key to ``avg``, ``min`` and ``max``: see `predsession.tensor.profile`. What the server does not
            tell is not there.

        Raises
        ------
        SourceError
            If there is no such model, or no times were taken.
        """
        return self._meter(model_name).all()

    def get_profile_last_frame(self, model_name: str | None = None) -> dict[str, float]:
        """Return how long the last call took, in milliseconds.

        Parameters
        ----------
        model_name : str or None
            Which; needed where the session has several.

        Returns
        -------
        dict of str to float
            As above; empty before the first call.

        Raises
        ------
        SourceError
            If there is no such model, or no times were taken.
        """
        return self._meter(model_name).last()

    def _meter(self, model_name: str | None) -> Meter:
        """Return a model's times."""
        name = self._book.name_of(model_name)
        if not self._with_profile:
            raise SourceError("no times were taken: open the session with with_profile=True")
        return self._meters[name]
