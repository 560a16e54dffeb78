"""`plant serve`: a model's labels as JSON over HTTP, and one page to paste a text into.

    GET  /          the page
    GET  /health    {"status": "ok", "model": ..., "labels": ..., "limits": ...}
    POST /predict   {"text": ...} or {"documents": [{"id": ..., "text": ...}, ...]}, and if wanted "top", "labels",
                    "reasons", "with_text", "rule"
                    -> {"documents": [{"id", "labels": [{"label", "score", "threshold", ...}]}]}

Wrong requests get {"error": {"where", "expected", "got", "fix"}} and a status of 400 to 422, and requests beyond the
limit 503. No text enters a log.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from plant.ground.errors import InputError
from plant.metrics.thresholds import TUNED
from plant.serving.inputs import LONGEST, Document, check_text
from plant.serving.predict import REASONS, predictions
from plant.serving.show import PAGE
from plant.serving.system import SavedSystem

log = logging.getLogger("plant")
POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
STOP_SECONDS = 10
"""Time that requests have to end after the server was asked to stop."""


@dataclass(frozen=True)
class Limits:
    """What one server takes.

    Attributes:
        documents: of a request.
        megabytes: of a request's body.
        waiting: requests at once, the one that is answered too; more get 503.
        body_seconds: time in which the body of a request must arrive, so that slow clients do not take all places.
    """

    documents: int = 64
    megabytes: float = 8.0
    waiting: int = 100
    body_seconds: float = 30.0


class Refused(InputError):
    """A request that gets an error, with its status."""

    def __init__(self, status: int, where: str, *, expected: str, got: str, fix: str) -> None:
        super().__init__(where, expected=expected, got=got, fix=fix)
        self.status = status


def build_app(model: SavedSystem, limits: Limits) -> Starlette:
    """The application."""
    turn = asyncio.Semaphore(1)  # a network takes all processors: one request after the other is the fastest
    at_once = 0

    async def predict(request: Request) -> Response:
        nonlocal at_once
        at_once += 1
        try:
            if at_once > limits.waiting:
                most = f"at most {limits.waiting} request(s) at once"
                raise Refused(503, "server", expected=most, got="one more", fix="Send it again later.")
            asked, documents = _parsed(await _body(request, limits), limits)
            async with turn:
                found = await run_in_threadpool(_answers, model, asked, documents)
        except InputError as refused:
            status, error = getattr(refused, "status", 422), refused
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as failure:  # noqa: BLE001 - the server stays up, and the message may quote the text
            name = type(failure).__name__
            log.error("predict failed: %s", name)
            status, error = 500, InputError("server", expected="an answer", got=name, fix="Tell its owner.")
        else:
            return JSONResponse({"documents": found})
        finally:
            at_once -= 1
        said = {part: getattr(error, part) for part in ("where", "expected", "got", "fix")}
        return JSONResponse({"error": said}, status_code=status)

    async def health(_: Request) -> Response:
        facts = {"model": model.system["name"], "labels": len(model.labels), "limits": asdict(limits)}
        return JSONResponse({"status": "ok", **facts})

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers={"Content-Security-Policy": POLICY})

    routes = [Route("/", page), Route("/health", health), Route("/predict", predict, methods=["POST"])]
    return Starlette(routes=routes)


class Given(BaseModel):
    """A document of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)
    id: str | None = None
    text: str


class Asked(BaseModel):
    """The body of a request: `text` alone, or `documents`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: str | None = None
    documents: list[Given] = []
    top: int | None = Field(None, ge=0)
    labels: list[str] = []
    reasons: int = Field(REASONS, ge=0)
    with_text: bool = False
    rule: str = TUNED


def _answers(model: SavedSystem, asked: Asked, documents: Sequence[Document]) -> list[dict[str, Any]]:
    found = predictions(model, documents, top=asked.top, reasons=asked.reasons, labels=asked.labels, rule=asked.rule)
    return [one.as_dict(text=asked.with_text) for one in found]


async def _body(request: Request, limits: Limits) -> bytes:
    """The body of a request, read only as far as the limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "Content-Type", expected="application/json", got="another type", fix="Send JSON.")
    body, most = bytearray(), int(limits.megabytes * 1e6)
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    fix = "Send fewer documents."
                    raise Refused(413, "body", expected=f"at most {most:,} bytes", got="more", fix=fix)
    except TimeoutError:
        within, fix = f"all of it within {limits.body_seconds:g} seconds", "Send it faster, or fewer documents."
        raise Refused(408, "body", expected=within, got="a part", fix=fix) from None
    return bytes(body)


def _parsed(body: bytes, limits: Limits) -> tuple[Asked, list[Document]]:
    """The request behind a body, and its documents."""
    try:
        asked = Asked.model_validate_json(body)
    except ValidationError as errors:
        fault = errors.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "body"
        what, fix = "the keys of POST /predict", 'Send {"text": "..."}.'
        raise Refused(422, where, expected=what, got=fault["msg"], fix=fix) from None
    given = asked.documents if asked.text is None else [Given(text=asked.text), *asked.documents]
    if not 0 < len(given) <= limits.documents:
        expected, fix = f"1 to {limits.documents}", "Send them in several requests, or use `plant predict` for a file."
        raise Refused(413, "documents", expected=expected, got=f"{len(given):,}", fix=fix)
    texts = [check_text(one.text, f"document {number}") for number, one in enumerate(given, 1)]
    names = [one.id or str(number) for number, one in enumerate(given, 1)]
    return asked, list(map(Document, names, texts))


def serve(model: SavedSystem, *, host: str, port: int, limits: Limits) -> Iterator[str]:
    """Answer until the process is asked to end; requests that are being answered are finished first.

    Port 0 takes a free one.

    Yields:
        A line with the address, when the server listens.

    Raises:
        InputError: the address is taken, or is not one of this machine.
    """
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise InputError(
            f"{host}:{port}", expected="a free address of this machine", got=str(error.strerror),
            fix="Name another with --host or --port.",
        ) from None  # fmt: skip
    next(predictions(model, [Document("first", "warm up")]), None)  # the first answer is not the slow one
    yield f"http://{host}:{listening.getsockname()[1]}  (a text has at most {LONGEST:,} characters; Ctrl-C ends)"
    config = uvicorn.Config(
        build_app(model, limits), timeout_graceful_shutdown=STOP_SECONDS, log_level="warning", access_log=False,
        server_header=False,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])
