"""Models that a client brings to Triton: with the call that loads them, and away again."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from interop.oip.bare import Bare, Refused, arrays, tensor
from interop.oip.loadable import CONFIG, COUNTING_CONFIG, COUNTING_MODEL, MODEL, NAME
from server_kit import until

from predsession.wire.oip.messages import InferRequest
from predsession.wire.oip.methods import METHODS

TWICE = InferRequest(NAME, (tensor("x", np.arange(3, dtype=np.float32)),))


@pytest.fixture
def bare(on_triton: Bare) -> Iterator[Bare]:
    """Triton, which is left without what a test brought."""
    yield on_triton
    for name in (NAME, "counting", "broken"):
        on_triton.call("RepositoryModelUnload", model_name=name)


def load(bare: Bare, name: str = NAME, model: str = MODEL, config: Mapping[str, Any] = CONFIG) -> None:
    """Load over gRPC: the file is `bytes_param`."""
    message = METHODS["RepositoryModelLoad"].request(model_name=name)
    message.parameters["config"].string_param = json.dumps(config)
    message.parameters["file:1/model.py"].bytes_param = model.encode()
    bare.call("RepositoryModelLoad", message)


def load_web(bare: Bare, model: str = MODEL) -> None:
    """Load over HTTP: the file is base64."""
    files = {"file:1/model.py": base64.b64encode(model.encode()).decode()}
    content = {"parameters": {"config": json.dumps(CONFIG), **files}}
    bare.web("POST", f"/v2/repository/models/{NAME}/load", json=content)


@pytest.mark.parametrize("how", [load, load_web])
def test_a_model_with_the_call(bare: Bare, how: Any) -> None:
    """A configuration and a file are enough: the model is ready when the call returns."""
    how(bare)
    assert bare.call("ModelReady", name=NAME).ready
    assert arrays(bare.infer(TWICE))["y"].tolist() == [0, 2, 4]
    config = bare.call("ModelConfig", name=NAME).config
    assert "scale" in config.parameters["predsession_quantization"].string_value
    assert not bare.call("RepositoryIndex").models
    assert NAME in {each.name for each in bare.call("ModelStatistics").model_stats}


def test_away_again(bare: Bare) -> None:
    """Once unloaded it is not ready, in no statistics, and NOT_FOUND; unloading again is no error."""
    load(bare)
    for _ in range(2):
        bare.call("RepositoryModelUnload", model_name=NAME)
        assert not bare.call("ModelReady", name=NAME).ready
    assert NAME not in {each.name for each in bare.call("ModelStatistics").model_stats}
    with pytest.raises(Refused) as caught:
        bare.infer(TWICE)
    assert (caught.value.status, "has no available versions" in caught.value.text) == ("NOT_FOUND", True)
    bare.call("RepositoryModelUnload", model_name="never-there")


def test_other_files_change_nothing(bare: Bare) -> None:
    """While a model is there, loading other files under its name answers OK and keeps the old ones."""
    load(bare)
    load(bare, model=MODEL.replace("float32(2)", "float32(3)"))
    assert arrays(bare.infer(TWICE))["y"].tolist() == [0, 2, 4]
    bare.call("RepositoryModelUnload", model_name=NAME)
    load(bare, model=MODEL.replace("float32(2)", "float32(3)"))
    assert arrays(bare.infer(TWICE))["y"].tolist() == [0, 3, 6]


@pytest.mark.parametrize(
    ("config", "model", "status", "words"),
    [
        (CONFIG, "import nowhere_to_be_found", "INVALID_ARGUMENT", "No module named 'nowhere_to_be_found'"),
        ({**CONFIG, "name": "other"}, MODEL, "INTERNAL", "failed to poll from model repository"),
        ({**CONFIG, "backend": "onnxruntime"}, MODEL, "INVALID_ARGUMENT", "unable to find backend library"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded(
    bare: Bare, config: Mapping[str, Any], model: str, status: str, words: str
) -> None:
    """A file that fails is INVALID_ARGUMENT with its reason; another name in the config is INTERNAL."""
    with pytest.raises(Refused) as caught:
        load(bare, "broken", model, config)
    assert (caught.value.status, words in caught.value.text) == (status, True)
    assert not bare.call("ModelReady", name="broken").ready


def test_nothing_with_the_call(bare: Bare) -> None:
    """A model that does not lie in the server's folder cannot be loaded by its name alone."""
    with pytest.raises(Refused) as caught:
        bare.call("RepositoryModelLoad", model_name=NAME)
    assert (caught.value.status, "failed to poll" in caught.value.text) == ("INTERNAL", True)


def test_a_stream_outlives_its_model(bare: Bare) -> None:
    """Unloading waits for nobody, and what is on its way comes to its end."""
    load(bare, "counting", COUNTING_MODEL, COUNTING_CONFIG)
    stream = bare.stream([InferRequest("counting", (tensor("n", np.array([10])),))])
    next(stream)
    bare.call("RepositoryModelUnload", model_name="counting")
    assert not bare.call("ModelReady", name="counting").ready
    assert len(list(stream)) == 9


def test_a_model_is_told_of_the_end(bare: Bare) -> None:
    """A model that asks is told that its stream was cancelled."""
    load(bare, "counting", COUNTING_MODEL, COUNTING_CONFIG)
    stream = bare.stream([InferRequest("counting", (tensor("n", np.array([3000])),))])
    next(stream)
    stream.cancel()
    until(lambda: "counting was cancelled" in bare.server.log, "the model to be told")
