"""What is read of the library: lists, pictures, frames, annotations. All of them are GETs."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

from PIL import Image
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from predsession.errors import PredSessionError
from predsession.inputs.video import FrameLoader
from predsession.server.annotations import WritingError, read_file
from predsession.server.library import Kind, Library, Record
from predsession.server.refusal import Fault, Refusal, explained
from predsession.server.service import Service
from predsession.wire.jsontypes import JSON, JSONObject

_PAGE, _MOST = 100, 1000
_NO_LIBRARY = "This server has no library; it is started with --library DIR."
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}
"""A file of a library is anybody's: a browser is to show it, and nothing else."""
_TYPES = {
    ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp",
    ".bmp": "image/bmp", ".tif": "image/tiff", ".tiff": "image/tiff", ".gif": "image/gif",
    ".jfif": "image/jpeg", ".mpo": "image/jpeg",
}  # fmt: skip
_FORMATS = {"png": ("PNG", "image/png"), "jpg": ("JPEG", "image/jpeg")}
_JPEG_QUALITY = 95


class LibraryRoutes:
    """One method a path.

    Parameters
    ----------
    service : Service
        With the library.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def reads(self) -> dict[str, Callable[[Request], Awaitable[JSON | Response]]]:
        """Return each path, without its first slash, with its handler."""
        return {
            "library": self.projects,
            "library/projects/{id}": self.project,
            "library/datasets/{id}": self.dataset,
            "library/images/{id}": self.image,
            "library/images/{id}/annotation": self.annotation,
            "library/videos/{id}/frames/{frame}": self.frame,
        }

    async def projects(self, request: Request) -> JSON:
        """List the projects, with their datasets."""
        projects = await self._projects()
        after, limit = _page(request)
        part = projects[after : after + limit]
        return {"projects": part, "total": len(projects), "next": _next(after, limit, len(projects))}

    async def project(self, request: Request) -> JSON:
        """Describe one project."""
        number = _number(request, "id")
        for project in await self._projects():
            if project["id"] == number:
                return project
        raise _missing("project", number)

    async def dataset(self, request: Request) -> JSON:
        """Describe one dataset, with a page of its items."""
        number = _number(request, "id")
        library = self._library()
        for project in await self._projects():
            datasets = project["datasets"]
            assert isinstance(datasets, list)
            for dataset in datasets:
                if dataset["id"] == number:
                    return _with_items(dataset, library, *_page(request))
        raise _missing("dataset", number)

    async def image(self, request: Request) -> Response:
        """Answer with an image's file."""
        _, path = await self._file(request, "image")
        kind = _TYPES.get(path.suffix.lower(), "application/octet-stream")
        return FileResponse(path, headers=_HEADERS, media_type=kind)

    async def annotation(self, request: Request) -> JSON:
        """Answer with an image's annotation, an empty one where there is none."""
        record, _ = await self._file(request, "image")
        library = self._library()
        place = library.annotation(record)
        found = library.safe(str(place.relative_to(library.root)))
        if found is None:
            return {"description": "", "tags": [], "objects": []}
        try:
            return await asyncio.to_thread(read_file, found)
        except WritingError as error:
            raise Fault(f"WritingError({str(error)!r})") from None

    async def frame(self, request: Request) -> Response:
        """Answer with a frame of a video, upright."""
        _, path = await self._file(request, "video")
        name = request.query_params.get("format", "png")
        if name not in _FORMATS:
            raise Refusal(400, explained(f"format is {name!r}; it must be png or jpg"))
        number = _number(request, "frame")
        try:
            data = await asyncio.to_thread(_encoded, path, number, _FORMATS[name][0])
        except PredSessionError as error:
            text = str(error).replace(str(path), f"video {request.path_params['id']}")
            raise Refusal(404, explained(text)) from None
        return Response(data, 200, _HEADERS, _FORMATS[name][1])

    def _library(self) -> Library:
        """Return the library, or refuse."""
        if self._service.library is None:
            raise Refusal(404, explained(_NO_LIBRARY))
        return self._service.library

    async def _projects(self) -> list[JSONObject]:
        """Return what is there now."""
        library = self._library()
        await asyncio.to_thread(library.refresh)
        return library.projects()

    async def _file(self, request: Request, kind: Kind) -> tuple[Record, Path]:
        """Return an item, and where it lies."""
        library, number = self._library(), _number(request, "id")
        path = await asyncio.to_thread(library.file, kind, number)
        record = library.record(kind, number)
        if path is None or record is None:
            raise _missing(kind, number)
        return record, path


def _number(request: Request, name: str) -> int:
    """Return a number that is part of a path."""
    text = str(request.path_params[name])
    if not (text.isascii() and text.isdigit()) or len(text) > 15:
        raise Refusal(404, explained(f"{text!r} is no number."))
    return int(text)


def _missing(kind: str, number: int) -> Refusal:
    """Return the refusal for what is not there."""
    return Refusal(404, explained(f"There is no {kind} {number} in the library."))


def _page(request: Request) -> tuple[int, int]:
    """Return after how many entries a page begins, and how many it has at most."""
    numbers = []
    for name, default in (("after", 0), ("limit", _PAGE)):
        text = request.query_params.get(name, str(default))
        if not (text.isascii() and text.isdigit()) or len(text) > 15:
            raise Refusal(400, explained(f"{name} is {text!r}; it must be a whole number of at least 0"))
        numbers.append(int(text))
    return numbers[0], min(numbers[1], _MOST)


def _next(after: int, limit: int, total: int) -> int | None:
    """Return the ``after`` of the next page, None on the last."""
    return after + limit if limit and after + limit < total else None


def _with_items(dataset: JSONObject, library: Library, after: int, limit: int) -> JSONObject:
    """Return a dataset with a page of its items."""
    number, images, videos = (int(str(dataset[key])) for key in ("id", "images_count", "videos_count"))
    items: list[JSON] = [
        {"id": one.id, "kind": one.kind, "name": one.name}
        for one in library.items(number, after=after, limit=limit)
    ]
    return {**dataset, "items": items, "total": images + videos, "next": _next(after, limit, images + videos)}


def _encoded(path: Path, number: int, kind: str) -> bytes:
    """Return a frame as a picture file."""
    buffer = io.BytesIO()
    options = {"quality": _JPEG_QUALITY} if kind == "JPEG" else {"compress_level": 1}
    Image.fromarray(FrameLoader(str(path), number)()).save(buffer, kind, **options)
    return buffer.getvalue()
