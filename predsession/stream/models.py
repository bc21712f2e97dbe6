"""What makes results of batches: a function, images through a deployed model, tensors through a session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from predsession.errors import InvalidRequestError, ItemError, SourceError
from predsession.prediction import Prediction
from predsession.stream.outputs import Array, MisfitError, as_array
from predsession.stream.samples import Batch
from predsession.stream.schema import DATA, Maker, Results

if TYPE_CHECKING:
    from predsession.model import DeployedModel
    from predsession.tensor import TensorSession
    from predsession.wire.replies import ServerInfo

Outcome = Results | Sequence[Prediction | ItemError]


class WrongAnswerError(SourceError):
    """What a model returned is of no kind that can be stored: no sample's fault, but the model's own."""


class Runner(Protocol):
    """Makes results of batches, and is opened once."""

    @property
    def faults(self) -> tuple[type[Exception], ...]:
        """Errors that are no sample's fault: each batch would go the same way."""

    @property
    def maker(self) -> Maker:
        """Which model it is."""

    def run(self, batch: Batch) -> Outcome:
        """Return results, a row for each sample."""

    def close(self) -> None:
        """Let go of what it holds, if that is its own."""


class Function:
    """A callable on a batch.

    Parameters
    ----------
    function : callable
        Takes a batch, and returns an array, a dict of arrays, or a list of `Prediction`.
    """

    def __init__(self, function: Callable[[Batch], object]) -> None:
        self._function = function
        self.faults: tuple[type[Exception], ...] = ()

    @property
    def maker(self) -> Maker:
        """Which it is: its name."""
        name = getattr(self._function, "__name__", type(self._function).__name__)
        return Maker(str(name), str(getattr(self._function, "version", "") or ""))

    def run(self, batch: Batch) -> Outcome:
        """Return what it returns."""
        results = self._function(batch)
        if isinstance(results, Mapping):
            return {name: as_array(value, str(name)) for name, value in results.items()}
        if hasattr(results, "__array__"):  # NumPy's, or torch's, perhaps on another device
            return as_array(results, DATA)
        if isinstance(results, Sequence) and not isinstance(results, str | bytes):
            return cast("Outcome", results)  # what is in it, the schema looks at
        raise WrongAnswerError(
            f"the model returned {type(results).__name__}; "
            "wanted an array, a dict of arrays, or a list of Prediction"
        )

    def close(self) -> None:
        """Do nothing: it is the caller's."""


class Images:
    """Images through a deployed model.

    Parameters
    ----------
    model : DeployedModel
        From `predsession.connect`.
    field : str
        Which field of a sample is the image: an array, a path, bytes or a PIL image.
    settings : mapping
        Keywords for its sessions: ``conf=0.4``.
    own : bool
        Whether the handle is closed with it.
    """

    def __init__(
        self, model: DeployedModel, field: str, settings: Mapping[str, object], *, own: bool
    ) -> None:
        self._model = model
        self._field = field
        self._settings = dict(settings)
        self._own = own
        # A bad image is an ItemError; what is refused beside that is a setting.
        self.faults: tuple[type[Exception], ...] = (InvalidRequestError,)
        self._maker = _told(model.info)  # asked now, before anything is taken from a source

    @property
    def maker(self) -> Maker:
        """Which it is, as the server said."""
        return self._maker

    def run(self, batch: Batch) -> Outcome:
        """Return a prediction for each image, or what is wrong with it."""
        images = batch.get(self._field)
        if not isinstance(images, Sequence | np.ndarray) or isinstance(images, str):
            raise SourceError(f"a sample has no field {self._field!r}; image_field= says which is the image")
        with self._model.predict_detached(list(images), on_error="yield", **self._settings) as session:
            return list(session)

    def close(self) -> None:
        """Close the handle, if it is ours."""
        if self._own:
            self._model.close()


def _told(info: ServerInfo) -> Maker:
    """Return which model it is, as far as the server says: ours by name and digest."""
    ours = info.raw.get("predsession")
    ours = ours if isinstance(ours, Mapping) else {}
    models = ours.get("models")
    name = models[0] if isinstance(models, Sequence) and models else info.app_name
    version = ours.get("digest") or info.raw.get("digest") or info.raw.get("pretrained_model")
    return Maker(str(name), str(version or ""))


class Tensors:
    """Fields through a session with named tensors: an input each.

    Parameters
    ----------
    session : TensorSession
        Open.
    model : str or None
        Which of its models.
    own : bool
        Whether the session is closed with it.
    """

    def __init__(self, session: TensorSession, model: str | None, *, own: bool) -> None:
        self._session = session
        self._model = model
        self._own = own
        self.faults: tuple[type[Exception], ...] = ()  # a sample of another shape is refused, too
        self._inputs = session.get_input_info(model)
        self._outputs = session.get_output_info(model)
        name = model or session.get_model_names()[0]
        versions = session.get_model_versions(name)
        self._maker = Maker(name, str(versions[-1]) if versions else "")

    @property
    def maker(self) -> Maker:
        """Which it is."""
        return self._maker

    def run(self, batch: Batch) -> Outcome:
        """Return the outputs, a row for each sample."""
        missing = [name for name in self._inputs if name not in batch]
        if missing:
            raise SourceError(f"samples lack {', '.join(missing)}; the model takes {', '.join(self._inputs)}")
        if self._takes_batches(batch):
            data = {name: _as_input(batch[name], name) for name in self._inputs}
            answers = self._session(data, model_name=self._model)
            return _checked({name: np.asarray(value) for name, value in answers.items()}, batch.count)
        axis = self._takes_batches(batch.only([0]))
        each = (
            {name: _as_input([value] if axis else value, name) for name, value in self._row(batch, row)}
            for row in range(batch.count)
        )
        results = list(self._session.map(each, model_name=self._model))
        return {name: _stacked([one[name] for one in results], name, axis=axis) for name in self._outputs}

    def _row(self, batch: Batch, row: int) -> Iterator[tuple[str, object]]:
        """Yield a sample's inputs."""
        fields = batch.fields(row)
        return ((name, fields[name]) for name in self._inputs)

    def _takes_batches(self, batch: Batch) -> bool:
        """Whether the model's inputs have a first axis for samples, and room for so many."""
        first = batch.fields(0)
        shapes = {name: _sides(info["valid_shape"]) for name, info in self._inputs.items()}
        return all(
            len(shape) == np.asarray(first[name]).ndim + 1 and shape[0] in {-1, batch.count}
            for name, shape in shapes.items()
        )

    def close(self) -> None:
        """Close the session, if it is ours."""
        if self._own:
            self._session.close()


def _sides(shape: object) -> list[int]:
    """Return an input's shape."""
    return [int(side) for side in shape] if isinstance(shape, list) else []


def _as_input(values: object, name: str) -> Array:
    """Return an input of a model, or say why it is none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise SourceError(f"the samples' {name!r} make no array: {error}") from None


def _stacked(values: Sequence[object], name: str, *, axis: bool) -> Array:
    """Put single answers together; `axis` says that each has a first axis of one."""
    try:
        arrays = [np.asarray(value) for value in values]
        return np.concatenate(arrays) if axis else np.stack(arrays)
    except ValueError as error:
        raise MisfitError(f"output {name!r} has another shape for each sample: {error}") from None


def _checked(outputs: dict[str, Array], rows: int) -> dict[str, Array]:
    """Return outputs that have a row for each sample."""
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != rows:
            raise WrongAnswerError(
                f"output {name!r} has shape {list(array.shape)}: no row for each of {rows} samples"
            )
    return outputs


def open_model(
    model: object, *, image_field: str, settings: Mapping[str, object], token: str | None
) -> Runner:
    """Open what makes results.

    Parameters
    ----------
    model : str, DeployedModel, TensorSession or callable
        ``"http://..."`` runs images, ``"grpc://host:port/model"`` tensors.
    image_field : str
        Which field of a sample is the image.
    settings : mapping
        For sessions with images.
    token : str or None
        Of the server, for a URL.

    Returns
    -------
    Runner
        Connected.

    Raises
    ------
    SourceError
        If it is none of these.
    """
    from predsession.model import DeployedModel, connect

    if isinstance(model, str):
        if model.startswith(("grpc://", "grpcs://", "unix:")):
            return _tensors(model, token)
        handle = connect(model, token=token)
        with contextlib.ExitStack() as opened:
            opened.callback(handle.close)
            images = Images(handle, image_field, settings, own=True)
            opened.pop_all()  # it closes the handle itself
            return images
    if isinstance(model, DeployedModel):
        return Images(model, image_field, settings, own=False)
    if type(model).__name__ == "TensorSession":  # not imported: its extra may not be installed
        from predsession.tensor import TensorSession

        if isinstance(model, TensorSession):
            return Tensors(model, None, own=False)
    if callable(model):
        return Function(model)
    raise SourceError(
        f"model is {type(model).__name__}; "
        "wanted a server's URL, a DeployedModel, a TensorSession, or a function of a batch"
    )


def _tensors(address: str, token: str | None) -> Tensors:
    """Open a session with tensors: the path of the address is the model's name."""
    from predsession.tensor import TensorSession

    scheme, _, rest = address.partition("://")
    host, slash, name = rest.partition("/") if rest else (address, "", "")
    target = f"{scheme}://{host}" if rest else address
    session = TensorSession(target, models=[name] if slash and name else None, token=token)
    with contextlib.ExitStack() as opened:
        opened.callback(session.close)
        tensors = Tensors(session, name or None, own=True)
        opened.pop_all()
        return tensors
