"""Values of the tensor client: addresses, HTensor, quantised numbers, times, checks of a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from predsession.errors import PredSessionError, ProtocolError, SessionClosedError, SourceError
from predsession.tensor.address import find_address
from predsession.tensor.answers import check_output, placed
from predsession.tensor.containers import Container
from predsession.tensor.deploying import Options
from predsession.tensor.hosting import ServerHandle
from predsession.tensor.htensor import HTensor
from predsession.tensor.info import TensorInfo, table
from predsession.tensor.ledger import Record
from predsession.tensor.plan import Kept, make_plan
from predsession.tensor.profile import Meter, ServerTimes, counted, told
from predsession.tensor.quantization import dequantize, quantize
from predsession.wire.oip.facts import Counters, ModelFacts, Quantization, TensorFacts
from predsession.wire.oip.messages import Tensor
from predsession.wire.oip.residency import INFER_NS, POST_NS, PRE_NS, QUEUE_NS


@pytest.mark.parametrize(
    ("host", "port", "target", "http", "secure"),
    [
        ("box", None, "box:8001", False, False),
        ("box", 9000, "box:9000", False, False),
        ("box:7", None, "box:7", False, False),
        ("box:7", 7, "box:7", False, False),
        (" grpc://box:7/ ", None, "box:7", False, False),
        ("GRPC://box:7", None, "box:7", False, False),
        ("grpcs://box", None, "box:8001", False, True),
        ("grpc://[::1]:7", None, "[::1]:7", False, False),
        ("[::1]", None, "[::1]:8001", False, False),
        ("unix:/tmp/a.sock", None, "unix:/tmp/a.sock", False, False),
        ("http://box:80/", None, "http://box:80", True, False),
        ("https://box/net/secret-of-8/", None, "https://box/net/secret-of-8", True, False),
    ],
)
def test_addresses(host: str, port: int | None, target: str, http: bool, secure: bool) -> None:
    """Every form of an address means a target, and which of the two ways of speaking."""
    found = find_address(host, port)
    assert (found.target, found.http, found.secure) == (target, http, secure)
    assert "secret" not in found.shown + repr(found)


@pytest.mark.parametrize(
    ("host", "port", "text"),
    [
        ("", None, "no server's address"),
        ("ftp://box", None, "no server's address"),
        ("grpc://box:7/path", None, "no server's address"),
        ("grpc://me:pw-secret@box:7", None, "no server's address"),
        ("grpc://:pw-secret@box:7", None, "no server's address"),
        ("box:99999", None, "no server's address"),
        ("box:0", None, "wanted 1 to 65535"),
        ("box", 0, "wanted 1 to 65535"),
        ("box", 70000, "wanted 1 to 65535"),
        ("box", "8001", "wanted 1 to 65535"),
        ("box", True, "wanted 1 to 65535"),
        ("box:7", 8, "leave out one of the two"),
        ("http://box", 8, "pass one of the two"),
        ("unix:/a", 8, "is a socket"),
        ("http://", None, "not a server's URL"),
        ("http://box?a=secret", None, "not a server's URL"),
        (5, None, "no server's address"),
    ],
)
def test_addresses_that_mean_nothing(host: Any, port: Any, text: str) -> None:
    """They are the caller's mistake, in words that show no password."""
    with pytest.raises(SourceError, match=text) as caught:
        find_address(host, port)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compress_option": "BOTH"}, "compress_option"),
        ({"compress_option": ["IN"]}, "compress_option"),
        ({"server_timeout": 0}, "server_timeout"),
        ({"server_timeout": float("nan")}, "server_timeout"),
        ({"server_timeout": "5"}, "server_timeout"),
        ({"server_timeout": 1441}, "1440 at most"),
        ({"headers": {"a b": "x"}}, "no header's name"),
        ({"headers": {"a": "secret\n"}}, "printable ASCII"),
        ({"headers": {"a": b"secret"}}, "printable ASCII"),
        ({"token": "secret\n"}, "token is no text"),
    ],
)
def test_a_server_that_cannot_be_asked(options: dict[str, Any], text: str) -> None:
    """Options that mean nothing are refused before a connection is made, and no secret is shown."""
    with pytest.raises(SourceError, match=text) as caught:
        ServerHandle("127.0.0.1:1", **options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("core", ["0", None, True, [0, "1"], -2, 1.5, [[0]]])
def test_cores_that_are_none(core: Any) -> None:
    """What is no core's number is refused."""
    with pytest.raises(SourceError, match="core_id"):
        Options.read(core, None)


@pytest.mark.parametrize("told", [["a"], {"a": 1}, {1: "a"}, "a=b"])
def test_an_environment_that_is_none(told: Any) -> None:
    """Only texts by name are an environment; the refusal does not show them."""
    with pytest.raises(SourceError, match="remote_environment"):
        Options.read(-1, told)


def test_options() -> None:
    """-1 is any core; what was said is named."""
    assert Options.read([-1, 2], None).given == []
    assert Options.read(2, {"A": "b"}).given == ["core_id", "remote_environment"]
    assert Options.read((0, 1), {}).cores == (0, 1)


# -- HTensor ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "key", "there"),
    [
        (None, None, False),
        ([], None, False),
        ("cpu", None, False),
        ("server", "k", True),
        ("bpu", "k", True),
        (["cpu", "bpu"], "k", True),
        (("server", "cpu"), "k", True),
    ],
)
def test_where_an_htensor_lives(device: Any, key: str | None, there: bool) -> None:
    """Every place and both words for the server; its key goes with the server only."""
    tensor = HTensor(np.zeros(2), device, key)
    assert (tensor.device, tensor.key, tensor.on_server, tensor.shape) == (device, key, there, (2,))


@pytest.mark.parametrize(
    ("device", "key", "text"),
    [
        ("gpu", None, "device is 'gpu'"),
        (5, None, "device is 5"),
        ([["cpu"]], None, "device is"),
        (["cpu", None], None, "device is"),
        ("server", None, "needs a key"),
        ("server", "", "needs a key"),
        (["cpu", "server"], 5, "needs a key"),
        ("cpu", "k", "leave out the key"),
        (None, "k", "leave out the key"),
    ],
)
def test_an_htensor_that_lives_nowhere(device: Any, key: Any, text: str) -> None:
    """Other places, and keys without the server, are refused in words."""
    with pytest.raises(SourceError, match=text):
        HTensor(np.zeros(2), device, key)


def test_setting_data() -> None:
    """Data may be set to another shape and dtype, not to what is no array; device and key stay."""
    tensor = HTensor(None, ["cpu", "server"], "k")
    assert (tensor.data, tensor.shape) == (None, None)
    before = tensor.stamp
    tensor.data = np.zeros((2, 3))
    assert tensor.shape == (2, 3)
    assert tensor.stamp != before
    for wrong in (None, [1], 5.0):
        with pytest.raises(SourceError, match="an HTensor's data is"):
            tensor.data = wrong
    assert tensor.shape == (2, 3)
    for name in ("device", "key", "shape"):
        with pytest.raises(AttributeError):
            setattr(tensor, name, None)
    assert repr(tensor) == "HTensor(shape=(2, 3), float64, device=['cpu', 'server'], key='k')"


# -- checks ----------------------------------------------------------------------------------------

MODEL = ModelFacts(
    "net",
    ("1",),
    "onnx",
    (TensorFacts("a", "FP32", (-1, 3)), TensorFacts("b", "INT4", (2,))),
    (TensorFacts("y", "FP32", (-1, 3)), TensorFacts("z", "INT64", (1,))),
)
GOOD = {"a": np.zeros((5, 3), np.float32), "b": np.array([-8, 7], np.int8)}


def _plan(data: Any = None, config: Any = None, **kept: Kept) -> Any:
    return make_plan(MODEL, GOOD if data is None else data, config, kept=kept)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"a": None}, "'a' of 'net' is None"),
        ({"a": [[1.0]]}, "'a' of 'net' is list; wanted a numpy.ndarray"),
        ({"a": np.zeros((5, 3))}, r"takes FP32 \(float32\); the array is float64"),
        ({"a": np.zeros((5, 3), complex)}, "the array is complex128"),
        ({"a": np.zeros(3, np.float32)}, r"takes shape \[-1, 3\]; the array has \[3\]"),
        ({"a": np.zeros((5, 4), np.float32)}, r"takes shape \[-1, 3\]; the array has \[5, 4\]"),
        ({"b": np.array([8, 0], np.int8)}, "takes INT4, -8 to 7; the array has 0 to 8"),
        ({"b": np.array([0, 0], np.uint8)}, "takes INT4"),
        ({"c": np.zeros(1)}, "'net' takes 'a', 'b': unknown 'c'"),
        ({"a": HTensor(None, None)}, "without data"),
        ({"a": HTensor(None, "server", "k")}, "does not keep: it keeps 'other'"),
        ({"a": HTensor(None, "server", "other")}, "takes FP32; 'other' on the server is INT64"),
    ],
)
def test_data_that_does_not_fit(change: dict[str, Any], text: str) -> None:
    """Names, shapes, dtypes and keys are compared with the model's, and the difference is said."""
    with pytest.raises(SourceError, match=text):
        _plan({**GOOD, **change}, other=Kept("INT64", (1,)))


def test_missing_inputs() -> None:
    """A call without one of the inputs says which."""
    with pytest.raises(SourceError, match="missing 'b'"):
        _plan({"a": GOOD["a"]})
    with pytest.raises(SourceError, match="data is list"):
        _plan([1])


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ([1], "output_config is list"),
        ({"x": {"device": None}}, "'net' gives 'y', 'z', not 'x'"),
        ({"y": "server"}, "wanted"),
        ({"y": {"devices": None}}, "wanted"),
        ({"y": {"device": 5}}, "device is 5"),
        ({"y": {"device": [["cpu"]]}}, "device is"),
        ({"y": {"device": "gpu"}}, "device is 'gpu'"),
        ({"y": {"device": "server"}}, "needs a key"),
        ({"y": {"device": "server", "key": 5}}, "key is 5"),
        ({"y": {"device": "cpu", "key": "k"}}, "leave out the key"),
        ({name: {"device": "server", "key": "k"} for name in "yz"}, "the key k is given to two outputs"),
    ],
)
def test_an_output_config_that_means_nothing(config: Any, text: str) -> None:
    """What is to become of outputs is checked as well."""
    with pytest.raises(SourceError, match=text):
        _plan(config=config)


def test_one_key_for_two_tensors() -> None:
    """Two tensors of one key in one call are refused; one tensor for two inputs is not."""
    pair = ModelFacts("pair", (), "", tuple(TensorFacts(name, "FP32", (1,)) for name in "ab"), ())
    one, two = (HTensor(np.full(1, value, np.float32), "server", "k") for value in (1, 2))
    with pytest.raises(SourceError, match="the key 'k' is that of different tensors: the inputs 'a', 'b'"):
        make_plan(pair, {"a": one, "b": two}, None, kept={})
    assert len(make_plan(pair, {"a": one, "b": one}, None, kept={}).given) == 2
    there = HTensor(None, "server", "k")
    assert make_plan(pair, {"a": there, "b": there}, None, kept={"k": Kept("FP32", (1,))}).given


def test_a_plan_has_the_data_of_its_moment() -> None:
    """What is set after a call was checked belongs to the next call."""
    tensor = HTensor(GOOD["a"], ["cpu", "server"], "k")
    given = _plan({**GOOD, "a": tensor}).given[0]
    tensor.data = np.ones((1, 3), np.float32)
    assert given.array is GOOD["a"]
    assert given.stamp != tensor.stamp


def test_outputs_that_the_server_does_not_describe() -> None:
    """Where no outputs are known a configuration of them is refused in words that say why."""
    with pytest.raises(SourceError, match="does not say what 'net' gives"):
        make_plan(ModelFacts("net", (), "", (), ()), GOOD, {"y": {"device": None}}, kept={})


# -- quantised numbers -----------------------------------------------------------------------------

RANGES = {
    "INT4": (-8, 7), "UINT4": (0, 15), "INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767),
    "UINT16": (0, 65535), "INT32": (-(2**31), 2**31 - 1), "UINT32": (0, 2**32 - 1),
    "INT64": (-(2**63), 2**63 - 1), "UINT64": (0, 2**64 - 1),
}  # fmt: skip


def _info(datatype: str, scale: Any = (0.5,), zero: Any = (3,), axis: int | None = None) -> TensorInfo:
    return TensorInfo(TensorFacts("x", datatype, (-1, 3)), Quantization(tuple(scale), tuple(zero), axis))


@pytest.mark.parametrize("datatype", RANGES)
def test_quantize_keeps_to_the_range(datatype: str) -> None:
    """Beyond the datatype's range the nearest number is taken, 64 bits and infinity included."""
    least, most = RANGES[datatype]
    found = quantize(np.array([-np.inf, -1e30, 0.25, 0.75, 1e30, np.inf]), _info(datatype))
    assert found.dtype == _info(datatype).dtype
    # 0.25 / 0.5 is a half, which goes to the even number.
    assert found.tolist() == [least, least, 3, 5, most, most]


@pytest.mark.parametrize("axis", [1, -2, None])
def test_quantize_is_the_formula(axis: int | None) -> None:
    """Per axis or as a whole, it is ``clip(round(x / scale) + zero)``, and back ``(q - zero) * scale``."""
    scale, zero = ((0.1, 0.2, 3.0), (0, 5, -7)) if axis is not None else ((0.3,), (2,))
    info = _info("INT8", scale, zero, axis)
    real = np.random.default_rng(0).normal(0, 20, (4, 3, 2)).astype(np.float32)
    s, z = (np.array(each, np.float64).reshape((1, -1, 1)) for each in (scale, zero))
    wanted = np.clip(np.round(real.astype(np.float64) / s) + z, -128, 127).astype(np.int8)
    whole = quantize(real, info)
    np.testing.assert_array_equal(whole, wanted)
    back = dequantize(whole, info)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, ((wanted - z) * s).astype(np.float32))


@pytest.mark.parametrize(
    ("array", "info", "text"),
    [
        (np.zeros(3), TensorInfo(TensorFacts("x", "INT8", (3,))), "has no scales"),
        (np.zeros(3), _info("FP32"), "only whole numbers"),
        (np.zeros((2, 4)), _info("INT8", (1, 2, 3), (0, 0, 0), 1), "3 scales on axis 1"),
        (np.zeros(3), _info("INT8", (1, 2, 3), (0, 0, 0), 1), "3 scales on axis 1"),
        (np.array([np.nan]), _info("INT8"), "NaN"),
    ],
)
def test_what_cannot_be_quantised(array: Any, info: TensorInfo, text: str) -> None:
    """A tensor without scales, an array of another shape, and NaN are refused."""
    with pytest.raises(SourceError, match=text):
        quantize(array, info)


def test_facts_in_their_words() -> None:
    """A tensor's facts have hbm_infer's names, and a table shows them."""
    info = _info("INT16", (1.0, 2.0, 3.0), (0, 0, 1), 1)
    assert dict(info) == {
        "valid_shape": [-1, 3],
        "tensor_type": "DATA_TYPE_S16",
        "quanti_type": "QUANTI_TYPE_SCALE",
        "quantizeAxis": 1,
        "scale_data": [1.0, 2.0, 3.0],
        "zero_point_data": [0, 0, 1],
    }
    plain = TensorInfo(TensorFacts("y", "FP16", (2,)))
    assert dict(plain) == {
        "valid_shape": [2],
        "tensor_type": "DATA_TYPE_F16",
        "quanti_type": "QUANTI_TYPE_NONE",
    }
    assert table({"x": info, "y": plain}, "input") == [
        "input  valid_shape  tensor_type    quanti_type        scales",
        "x      [-1, 3]      DATA_TYPE_S16  QUANTI_TYPE_SCALE  3, axis 1",
        "y      [2]          DATA_TYPE_F16  QUANTI_TYPE_NONE",
    ]


# -- times -----------------------------------------------------------------------------------------


def _adds_up(times: dict[str, float]) -> None:
    """Check that the parts make up the whole."""
    board = times["prepr_duration"] + times["infer_duration"] + times["pospr_duration"]
    assert times["board_duration"] == pytest.approx(board, rel=1e-9)
    assert times["sd2rv_duration"] == pytest.approx(
        times["commu_duration"] + times["board_duration"], rel=1e-9
    )
    assert times["frame_duration"] >= times["sd2rv_duration"]


def test_times_add_up() -> None:
    """Of the last call and of the averages, also where the server tells of some calls only."""
    meter = Meter()
    assert (meter.last(), meter.all()) == ({}, {})
    meter.add(0.5, 0.4, ServerTimes(0.1, 0.15, 0.05))
    _adds_up(meter.last())
    meter.add(3.0, 2.0, None)
    assert set(meter.last()) == {"frame_duration", "sd2rv_duration"}
    meter.add(0.7, 0.6, ServerTimes(0.2, 0.1, 0.1))
    every = meter.all()
    _adds_up({key: each["avg"] for key, each in every.items()})
    assert all(each["min"] <= each["avg"] <= each["max"] for each in every.values())
    assert every["frame_duration"] == pytest.approx({"avg": 600.0, "min": 500.0, "max": 700.0})


def test_times_of_a_server_that_tells_none() -> None:
    """Only the whole is there; nothing is invented."""
    meter = Meter()
    for seconds in (1.0, 3.0):
        meter.add(seconds, seconds / 2, None)
    assert meter.all() == {
        "frame_duration": {"avg": 2000.0, "min": 1000.0, "max": 3000.0},
        "sd2rv_duration": {"avg": 1000.0, "min": 500.0, "max": 1500.0},
    }


def test_counters_tell_of_one_call_only() -> None:
    """Two looks at counters give a call's times if it is the only one between them."""
    first, second = Counters(4, 10, 20, 30, 40), Counters(5, 11, 22, 33, 44)
    assert counted(first, second) == ServerTimes(3e-9, 3e-9, 4e-9)
    assert counted(first, Counters(6, 11, 22, 33, 44)) is None
    assert counted(None, second) is None
    assert counted(first, None) is None


def test_container_of_kept_tensors() -> None:
    """A call of kept tensors alone has the container that they came from, if it is one."""
    from predsession.tensor.containers import container_of

    torch = Container(True, "cpu")
    assert container_of({}, [torch, torch]) == torch
    assert container_of({}, [torch, Container()]) == Container()
    assert container_of({"a": np.zeros(1)}, [torch]) == Container()
    assert issubclass(SourceError, PredSessionError)


@pytest.mark.parametrize(
    ("tensor", "told", "text"),
    [
        (Tensor("y", "FP32", (2,), b"12345678"), "FP32", ""),
        (Tensor("y", "FP32", (2,), None), None, ""),
        (Tensor("y", "BYTES", (1,), b"\x01\0\0\0a"), "BYTES", ""),
        (Tensor("y", "FP32", (2,), b"1234567"), "FP32", "7 bytes; it takes 8"),
        (Tensor("y", "FP32", (2,), b""), "FP32", "0 bytes; it takes 8"),
        (Tensor("y", "FP32", (-1,), None), "FP32", "'y'.*negative"),
        (Tensor("y", "FP32", (-2, -4), b"1" * 32), "FP32", "'y'.*negative"),
        (Tensor("y", "FP33", (2,), None), None, "no datatype"),
        (Tensor("y", "INT32", (2,), None), "FP32", "INT32; the model's metadata says FP32"),
        (Tensor("y", "BYTES", (2,), b"\x01\0\0\0a"), "BYTES", "1 elements; it takes 2"),
        (Tensor("y", "BYTES", (1,), b"\x09\0\0\0a"), "BYTES", "cut off"),
    ],
)
def test_outputs_that_cannot_be(tensor: Tensor, told: str | None, text: str) -> None:
    """Whatever is to become of it, an output has a datatype, sides and as many bytes as these take."""
    if not text:
        check_output(tensor, told)
        return
    with pytest.raises(ProtocolError, match=text):
        check_output(tensor, told)


def test_an_output_in_a_region() -> None:
    """Over gRPC it looks as if it had no bytes; bytes that came all the same are counted."""
    check_output(Tensor("y", "FP32", (2,), b""), "FP32", elsewhere=True)
    with pytest.raises(ProtocolError, match="4 bytes"):
        check_output(Tensor("y", "FP32", (2,), b"1234"), "FP32", elsewhere=True)


def test_where_a_broken_promise_was() -> None:
    """It names the model and the address, once."""
    error = placed(ProtocolError("the reply lacks output 'y'"), "net", "grpc://box:1")
    assert (str(error), error.url) == ("'net' at grpc://box:1: the reply lacks output 'y'", "grpc://box:1")
    assert placed(error, "net", "grpc://box:1") is error


@pytest.mark.parametrize(
    ("times", "whole"),
    [
        ((1, 2, 3, 4), 10e-9),
        ((0, 0, 0, 0), 0.0),
        ((1, 2, -3, 4), None),
        ((1, True, 3, 4), None),
        ((1, 2), None),
    ],
)
def test_times_that_are_none(times: tuple[int, ...], whole: float | None) -> None:
    """A server's times are whole numbers of 0 or more, all four of them."""
    found = told(dict(zip((QUEUE_NS, PRE_NS, INFER_NS, POST_NS), times, strict=False)))
    assert (None if found is None else found.whole) == (None if whole is None else pytest.approx(whole))


@pytest.mark.parametrize("key", ["\ud800", "k" * 1025])
def test_keys_that_do_not_travel(key: str) -> None:
    """What UTF-8 cannot hold, or is too long, is refused when it is said."""
    with pytest.raises(SourceError, match=r"half a character|1,025 characters"):
        HTensor(np.ones(1), "server", key)
    with pytest.raises(SourceError, match=r"half a character|1,025 characters"):
        make_plan(
            ModelFacts("net", (), "", (), (TensorFacts("y", "FP32", (1,)),)),
            {"x": np.ones(1, np.float32)},
            {"y": {"device": "server", "key": key}},
            kept={},
        )
    assert HTensor(np.ones(1), "server", key[:1024].replace("\ud800", "\u00e4")).key


def test_a_record_after_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is added to it, what is crossed out then still counts, and its file goes with the last name."""
    monkeypatch.setenv("PREDSESSION_LEDGER", str(tmp_path))
    record = Record("grpc://box:1")
    for name in ("a long name of a model", "b"):
        record.add_model(name)
    record.remove_model("a long name of a model")
    record.add_region("r")
    (file,) = tmp_path.glob("*")
    wanted = {"server": "grpc://box:1", "models": ["b"], "regions": ["r"]}
    assert json.loads(file.read_text()) == wanted
    record.close()
    record.close()
    for add in (record.add_model, record.add_region):
        with pytest.raises(SessionClosedError):
            add("late")
    record.remove_model("b")
    assert file.exists()
    record.remove_region("r")
    assert not file.exists()
