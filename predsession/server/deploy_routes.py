"""The calls of a deployment: what runs, and what a server whose models are fixed says to them.

References
----------
docs/protocol.md, "What the server is".
"""

from __future__ import annotations

import platform

from starlette.requests import Request

from predsession.server.calls import read_body
from predsession.server.choice import asked
from predsession.server.models.bundled import BUNDLED
from predsession.server.refusal import Refusal, explained
from predsession.server.runner import Runner
from predsession.server.service import Service
from predsession.wire.jsontypes import JSON, JSONObject, as_object

DEPLOY_CALLS = (
    "get_deploy_info", "list_pretrained_models", "list_pretrained_model_infos", "freeze_model",
    "deploy_from_api", "inference_image_url",
)  # fmt: skip
_NOT_FROZEN = "Failed to freeze model. Its process keeps it loaded, so that the next job need not wait."
_NO_FETCHING = (
    "This server fetches nothing: who tells it to would reach what they cannot reach themselves. Fetch the "
    "picture and send it to inference_image; predsession's PredictionSession does so if it is given the URL."
)


class DeployRoutes:
    """One method a call; none of them changes what is served, which was settled when the server was started.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def get_deploy_info(self, request: Request) -> JSON:
        """Say what runs, in the keys of a stock server; null is what nobody knows."""
        runner, _ = await asked(self._service, request)
        return {
            "checkpoint_name": runner.spec.name,
            "model_name": runner.spec.name,
            "architecture": None,
            "checkpoint_url": None,
            "custom_checkpoint_path": None,
            "model_source": _source(runner),
            "task_type": runner.card.task,
            "device": _device(runner),
            "runtime": _runtime(runner),
            "model_precision": None,
            "hardware": platform.processor() or platform.machine() or None,
            "deploy_params": {},
        }

    async def list_pretrained_models(self, request: Request) -> JSON:
        """Name the models that may be asked for: those that are served."""
        await asked(self._service, request)
        return [runner.spec.name for runner in self._offered()]

    async def list_pretrained_model_infos(self, request: Request) -> JSON:
        """Describe them."""
        await asked(self._service, request)
        return [_described(runner) for runner in self._offered()]

    async def freeze_model(self, request: Request) -> JSON:
        """Say that the model stays as it is; a stock server answers so for one on a CPU."""
        await asked(self._service, request)
        return {"message": _NOT_FROZEN}

    async def deploy_from_api(self, request: Request) -> JSON:
        """Deploy the model that runs already; anything else is settled when the server is started."""
        runner, state = await asked(self._service, request)
        name = state.get("model_name")
        if name != runner.spec.name:
            raise Refusal(400, explained(self._not_this(name)))
        wanted = as_object(state.get("deploy_params"))
        for key, found in (("device", _device(runner)), ("runtime", _runtime(runner))):
            if wanted.get(key) not in (None, found):
                text = f"The {key} of {name} is {found or 'its own choice'}; it cannot be changed by a call."
                raise Refusal(400, explained(text))
        return {"result": "model was successfully deployed"}

    def _not_this(self, name: JSON) -> str:
        """Say why another model cannot be deployed."""
        if any(each.spec.name == name for each in self._offered()):
            return f"The model {name} is served already: call it below /{name}/, or with deploy: {name!r}."
        return f"The model {name!r} is not served; a server is told its models when it is started."

    async def inference_image_url(self, request: Request) -> JSON:
        """Refuse, and say what to call instead."""
        await read_body(request, self._service.config.limits)
        raise Refusal(403, explained(_NO_FETCHING))

    def _offered(self) -> list[Runner]:
        """Return the models that a call can reach; only one where a stock server is imitated."""
        return [self._service.first] if self._service.stock else list(self._service.runners.values())


def _is_onnx(runner: Runner) -> bool:
    """Whether it is a network that we run ourselves."""
    target = runner.spec.target
    return target.endswith(".toml") or (target in BUNDLED and target != "pixels")  # which is none


def _runtime(runner: Runner) -> str | None:
    """Return the runtime, by a stock server's name."""
    return "ONNXRuntime" if _is_onnx(runner) else None


def _device(runner: Runner) -> str | None:
    """Return the device, where it is ours to know: a model of the user's own may run anywhere."""
    return "cpu" if _is_onnx(runner) else None


def _source(runner: Runner) -> str:
    """Return where it comes from, in a stock server's words."""
    return "Pretrained models" if runner.spec.target in BUNDLED else "Custom models"


def _described(runner: Runner) -> JSONObject:
    """Describe a model; the name stands where stock clients look for it."""
    name, card = runner.spec.name, runner.card
    return {
        "model_name": name,
        "task_type": card.task,
        "number_of_classes": len(card.classes),
        "max_batch_size": card.max_batch_size,
        "model_source": _source(runner),
        "meta": {"model_name": name, "task_type": card.task},
    }
