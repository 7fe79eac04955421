"""The page of a study while it grows: served on this machine alone, read-only (`pernn ui`)."""

import hashlib
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import MachineError, PernnError, install_command
from pernn.lab.evidence import make_study
from pernn.lab.progress import label_run, look_at_sweeps
from pernn.lab.store import RunStatus, list_published, read_progress, seconds_left

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
MIN_SECONDS = 5.0
"""Seconds from one writing of the report to the next, at least."""


class Live:
    """What is served: the state of all sweeps, and the report as of the last finished trial.

    Args:
        root: Results directory.
        folder: Where the report is written.
        published: Published trials, which count as finished; `None` to count none.
        complain: Told of each damaged run.
    """

    def __init__(
        self, root: Path, folder: Path, published: Path | None, complain: Callable[[str], None]
    ) -> None:
        self.root, self.published, self.complain = root, published, complain
        self.path = folder / "study.html"
        self.token = secrets.token_urlsafe(24)
        self.version = ""
        self._written = -MIN_SECONDS
        self._seen: dict[str, RunStatus] = {}
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._said: set[str] = set()
        self._label = cache(partial(label_run, root))

    def state(self) -> dict[str, Any]:
        """Return the trials of each sweep by state, those that run, and the report's version."""
        folder = self.published
        published = list_published(folder, self._complain_once) if folder else set()
        with self._looking:
            found = look_at_sweeps(self.root, None, published, self._seen, self._complain_once)
        sweeps: list[dict[str, Any]] = []
        for name, runs in found.items():
            states = Counter(one.state for one in runs)
            running = {
                one.run: read_progress(self.root, one) for one in runs if one.state == "running"
            }
            sweeps.append(
                {
                    "name": name,
                    "trials": len(runs),
                    "states": dict(sorted(states.items())),
                    "seconds_left": seconds_left(runs, list(running.values())),
                    "running": [
                        {
                            "run": run,
                            "label": self._label(run),
                            "update": one.update,
                            "total": one.total,
                        }
                        for run, one in running.items()
                    ],
                }
            )
        counts = [(one["name"], one["states"].get("finished", 0)) for one in sweeps]
        self._write(hashlib.sha256(json.dumps(counts).encode()).hexdigest()[:16])
        return {"sweeps": sweeps, "report": self.version}

    def _write(self, version: str) -> None:
        """Begin to write the report if trials have finished since the last one was written."""
        recent = time.monotonic() - self._written < MIN_SECONDS
        if version == self.version or recent or not self._lock.acquire(blocking=False):
            return

        def write() -> None:
            try:
                make_study(self.root, self.path, self._complain_once, self.published)
                self.version = version
            except Exception as error:  # noqa: BLE001
                # Whatever it is, the page goes on with the report before.
                said = "" if isinstance(error, PernnError) else f"{type(error).__name__}: "
                self._complain_once(f"{said}{error}")
            finally:
                self._written = time.monotonic()
                self._lock.release()

        threading.Thread(target=write, name="report", daemon=True).start()

    def _complain_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.complain(text)


def application(live: Live, port: int) -> "Starlette":
    """Return the application: a few addresses below a random token, GET only.

    Another host or origin, another method or a wrong token is refused, so that no page of another
    site can read results through the browser.

    Raises:
        MachineError: If the extra `ui` is missing.
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise MachineError(f"the live page needs starlette: {install_command('ui')}") from None
    origins = {f"http://{host}:{port}" for host in (HOST, "localhost")}
    hosts = {origin.removeprefix("http://") for origin in origins}

    def allowed(request: "Request") -> bool:
        given = request.path_params["token"].encode(errors="replace")
        origin = request.headers.get("origin")
        return (
            request.headers.get("host") in hosts
            and (origin is None or origin in origins)
            and request.headers.get("sec-fetch-site") != "cross-site"
            and secrets.compare_digest(given, live.token.encode())
        )

    def answer(request: "Request") -> "Response":
        if not allowed(request):
            return PlainTextResponse("not here\n", 403)
        name = request.path_params.get("name", "")
        if name == "state.json":
            return JSONResponse(live.state())
        if name == "study.html" and live.path.exists():
            return FileResponse(live.path)
        kinds = {"": "text/html", "live.js": "text/javascript", "live.css": "text/css"}
        if name not in kinds:
            return PlainTextResponse("not here\n", 404)
        content = (
            files("pernn.lab.reports").joinpath(name or "live.html").read_text(encoding="utf-8")
        )
        return Response(content, media_type=kinds[name])

    def guarded(request: "Request") -> "Response":
        response = answer(request)
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        # The report has a policy of its own in it, with the digests of its scripts.
        own = request.path_params.get("name") == "study.html"
        response.headers["Content-Security-Policy"] = "frame-ancestors 'self'" if own else POLICY
        return response

    places = ("/{token}/", "/{token}/{name}")
    made = Starlette(routes=[Route(place, guarded, methods=["GET"]) for place in places])
    made.router.redirect_slashes = False
    return made


def serve(live: Live, port: int, on_begin: Callable[[str], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        live: What is served.
        port: Of this machine; 0 for any that is free.
        on_begin: Told the address, token included, when it answers.

    Raises:
        MachineError: If the extra `ui` is missing, or the port is taken.
    """
    import socket

    try:
        import uvicorn
    except ImportError:
        raise MachineError(f"the live page needs uvicorn: {install_command('ui')}") from None
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        # From here on it answers, if only when the server has begun.
        listener.listen()
    except OSError as error:
        raise MachineError(f"port {port}: {error.strerror}: choose another --port") from None
    port = listener.getsockname()[1]
    config = uvicorn.Config(application(live, port), log_level="warning", lifespan="off")
    on_begin(f"http://{HOST}:{port}/{live.token}/")
    with listener:
        uvicorn.Server(config).run([listener])
