"""The gRPC door for tests: a server with cameras and both kinds of address, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from number_clips import write_numbers
from PIL import Image
from server_kit import Server

from predsession import RefusedError
from predsession.edge import InferenceClient, InferenceResult
from predsession.server.models.pixels import box_number, number_picture

MODELS = Path(__file__).with_name("edge_models.py")
FRAMES = 12


def number_of(result: InferenceResult, size: tuple[int, int] = (64, 32)) -> int:
    """Read the number off what was found, by normalized boxes."""
    return box_number(result.objects[0].bbox.to_xyxy(*size))


def is_let_go(client: InferenceClient, model: str) -> bool:
    """Whether a model could be unregistered; a stream that was left has it until the server sees that."""
    try:
        client.unregister_model(model)
    except RefusedError:
        return False
    return client.get_model_info(model) is None


@contextmanager
def edge_server(folder: Path) -> Iterator[Server]:
    """Run a server with a model of numbers, three cameras, and an address of either kind."""
    (folder / "pictures").mkdir()
    for number in range(FRAMES):
        Image.fromarray(number_picture(number)).save(folder / "pictures" / f"{number:02}.png")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "0.png").write_bytes((folder / "pictures" / "00.png").read_bytes()[:60])
    write_numbers(folder / "clip.mp4", FRAMES)
    arguments = ["pixels", "--grpc", "127.0.0.1:0", "--grpc", f"unix:{folder}/door.sock"]
    cameras = {name: folder / name for name in ("pictures", "damaged", "clip.mp4")}
    for name, path in cameras.items():
        arguments += ["--stream", f"{name}={path}"]
    limits = [
        "--limit-frames",
        "8",
        "--limit-sessions",
        "3",
        "--limit-streams",
        "2",
        "--limit-registered",
        "2",
    ]
    with Server(*arguments, *limits, "--limit-pixels", "20M") as running:
        yield running


@contextmanager
def restoring(server: Server) -> Iterator[InferenceClient]:
    """A client over the unix socket; what it changed of the model's settings is changed back."""
    with InferenceClient(server.grpc[1]) as made:
        yield made
        usual = {"conf": 0.0, "delay": 0, "fail_at": -1, "exit_at": -1, "hang_at": -1}
        made.update_postprocess_config("pixels", usual)
