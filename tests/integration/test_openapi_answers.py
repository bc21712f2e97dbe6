"""What a server answers has the shapes that its description names."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
import requests
from PIL import Image
from server_kit import until

from predsession.server.models.pixels import number_picture

INFOS = [
    "get_session_info", "get_model_meta", "get_output_classes_and_tags", "get_custom_inference_settings",
    "get_tracking_settings", "get_status", "is_deployed", "is_ready", "get_deploy_info",
    "list_pretrained_models", "list_pretrained_model_infos", "freeze_model",
]  # fmt: skip


class Server:
    """A server and its own description."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.document: dict[str, Any] = requests.get(f"{url}/openapi.json", timeout=30).json()

    def check(self, path: str, reply: requests.Response) -> Any:
        """Hold an answer against what the description says of its status; return it."""
        method = (reply.request.method or "").lower()
        responses = self.document["paths"][path][method]["responses"]
        assert str(reply.status_code) in responses, (path, reply.status_code, reply.text[:200])
        schema: Mapping[str, Any] = responses[str(reply.status_code)]["content"]["application/json"]["schema"]
        whole = {**schema, "components": self.document["components"]}
        jsonschema.Draft202012Validator(whole).validate(reply.json())
        return reply.json()

    def post(self, call: str, **options: Any) -> Any:
        """Make a call, and hold the answer against the description."""
        return self.check(f"/{call}", requests.post(f"{self.url}/{call}", timeout=30, **options))

    def on_job(self, call: str, uuid: str, **state: object) -> Any:
        """Make a call about a job."""
        return self.post(call, json={"state": {"inference_request_uuid": uuid, **state}})


@pytest.fixture
def server(either: str) -> Server:
    """Both kinds of server."""
    return Server(either)


def files(*numbers: int) -> list[tuple[str, tuple[str, bytes, str]]]:
    """Return the parts of a form."""
    parts = []
    for number in numbers:
        buffer = io.BytesIO()
        Image.fromarray(number_picture(number)).save(buffer, "PNG")
        parts.append(("files", (f"openapi_{number}.png", buffer.getvalue(), "image/png")))
    return parts


def test_infos_and_reads(server: Server) -> None:
    """The calls without a body, and what is read with a GET."""
    for call in INFOS:
        server.post(call)
    for path in ("/healthz", "/readyz", "/overview.json"):
        server.check(path, requests.get(server.url + path, timeout=30))


def test_a_job_s_life(server: Server) -> None:
    """Every call of a job, from its submit to its clear."""
    uuid = server.post("inference_batch_async", files=files(1, 2))["inference_request_uuid"]
    server.on_job("get_inference_progress", uuid)
    server.on_job("get_inference_status", uuid)
    server.on_job("get_preparing_progress", uuid)
    server.on_job("get_inference_result", uuid)
    server.check("/overview.json", requests.get(f"{server.url}/overview.json", timeout=30))
    until(lambda: server.on_job("pop_inference_results", uuid)["finished"], "the end")
    server.on_job("stop_inference", uuid)
    server.on_job("clear_inference_request", uuid)
    assert server.post("inference_image", files=files(3))["annotation"]["objects"]
    assert len(server.post("inference_batch", files=files(4, 5))) == 2


def test_refusals(server: Server) -> None:
    """The errors too are those that the description names."""
    server.on_job("get_inference_progress", "no-such-job")
    server.post("pop_inference_results", json={"state": {}})
    server.post("inference_image", data={"state": "{}"})
    server.post("inference_image", files=files(1), data={"state": "no JSON"})
    server.post("deploy_from_api", json={"state": {"model_name": "another"}})
    server.post("inference_image_url", json={"state": {"image_url": "http://127.0.0.1:1/x.jpg"}})


def test_the_extension(ours: str) -> None:
    """Numbered results, item errors and the list have their shapes too."""
    server = Server(ours)
    state = {"item_errors": True, "session": "described", "settings": {"fail_at": 7}}
    started = server.post("inference_batch_async", files=files(6, 7), data={"state": json.dumps(state)})
    uuid = started["inference_request_uuid"]

    def both() -> Any:
        popped = server.on_job("pop_inference_results", uuid, ack=0, wait=10)
        return popped if len(popped["pending_results"]) == 2 else None

    popped = until(both, "both results")
    assert [item["number"] for item in popped["pending_results"]] == [1, 2]
    assert "error" in popped["pending_results"][1]
    listed = server.post("list_inference_requests", json={"state": {"session": "described"}})
    assert [entry["uuid"] for entry in listed["requests"]] == [uuid]
    server.on_job("clear_inference_request", uuid)
