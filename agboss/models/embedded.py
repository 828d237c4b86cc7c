"""``embedded:``: any GGUF file, run inside this process by llama.cpp. No key, no network, no second process."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from agboss.components.model_spec import ModelSpec
from agboss.errors import MissingExtraError, ModelError
from agboss.models.chat import ModelReply, ModelRequest
from agboss.models.embedded_chat import ChatStream, chat_request
from agboss.models.fetch import fetched_path
from agboss_memory.wording import text_of

MODEL_VARIABLE = "AGBOSS_EMBEDDED_MODEL"
"""Environment variable with the GGUF file of ``embedded:default``."""
EMBEDDED_WINDOW = 2048
"""Window in tokens unless ``context_window=`` says more: what SmolLM2-135M was trained for."""
_SILENT = -1
_PROMPT_CACHE_MIB = 256


class EmbeddedModel:
    """A GGUF file behind ``ChatModel``. Loaded at the first call, in a worker thread; free of charge.

    Args:
        spec: ``embedded:/path/to/file.gguf``, ``embedded:smollm2`` or ``embedded:default``; ``context_window`` is the
            window in tokens.

    Raises:
        MissingExtraError: llama.cpp is not installed.
        ModelError: ``model.no-file`` when there is no such file.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._path = _existing(spec)
        self._library = _library()
        self._window = spec.context_window or EMBEDDED_WINDOW
        self._loading = anyio.Lock()
        self._running: set[threading.Event] = set()
        self._server: Any = None

    @property
    def context_window(self) -> int:
        """Window in tokens."""
        return self._window

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request in a worker thread. Cancellation stops it at the next token.

        Raises:
            ModelError: ``model.context-overflow``, ``model.cannot`` (a schema or message it refuses),
                ``model.no-file`` (a file that is no model), ``model.closed`` (while it answered) or ``model.failed``.
        """
        server = await self._open()
        stop, stream = threading.Event(), ChatStream()
        self._running.add(stop)
        try:
            work = _run(server, chat_request(request), stream, stop, request.on_text)
            await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            if stop.is_set():
                raise ModelError("model.closed", f"model {self._spec.model!r} was closed while it answered")
        finally:
            stop.set()
            self._running.discard(stop)
        if stream.raised is not None:
            raise stream.raised
        if stream.error is not None:
            raise self._failure(stream.error, stream.error_type)
        return stream.reply()

    async def aclose(self) -> None:
        """Stop what is running and unload the model. A second call does nothing."""
        for stop in self._running:
            stop.set()
        server, self._server = [self._server], None
        if server[0] is not None:
            # The last reference unloads the model, which blocks.
            await anyio.to_thread.run_sync(server.clear)

    async def _open(self) -> Any:
        async with self._loading:
            if self._server is None:
                try:
                    self._server = await anyio.to_thread.run_sync(self._load)
                except (RuntimeError, ValueError, OSError) as error:
                    raise ModelError(
                        "model.no-file",
                        f"model {self._spec.model!r} cannot be loaded: {self._path} is no GGUF file that llama.cpp can run",
                        "fetch it again with 'agboss models fetch', or name another file",
                        model=self._spec.model,
                        path=str(self._path),
                    ) from error
            return self._server

    def _load(self) -> Any:
        parameters = self._library.CommonParams()
        parameters.model.path = str(self._path)
        parameters.n_ctx = self._window
        parameters.n_parallel = 1
        parameters.verbosity = _SILENT
        parameters.cache_ram_mib = _PROMPT_CACHE_MIB
        # The library also listens on a loopback port; a key that nobody knows keeps it shut.
        parameters.api_keys = [secrets.token_urlsafe(32)]
        parameters.ui = False
        return self._library.Server(parameters)

    def _failure(self, message: str, kind: str) -> ModelError:
        if kind == "exceed_context_size_error":
            return ModelError(
                "model.context-overflow",
                f"model {self._spec.model!r} was sent more than its window of {self._window} tokens holds: {message}",
                "set context_window= to a larger window that the model was trained for, or send less",
                model=self._spec.model,
                window=self._window,
            )
        code = "model.cannot" if kind in {"invalid_request_error", "ValueError"} else "model.failed"
        return ModelError(code, f"model {self._spec.model!r} failed: {message[:300]}", model=self._spec.model)


def embedded_path(spec: ModelSpec) -> Path:
    """The file that an ``embedded:`` id stands for, whether or not it is there."""
    if spec.name == "default":
        named = os.environ.get(MODEL_VARIABLE)
        return Path(named).expanduser() if named else fetched_path()
    return fetched_path() if spec.name == "smollm2" else Path(spec.name).expanduser()


def _existing(spec: ModelSpec) -> Path:
    path = embedded_path(spec)
    if path.is_file():
        return path
    fetched = path == fetched_path()
    raise ModelError(
        "model.no-file",
        f"model {spec.model!r} needs the file {path}, which is not there",
        "fetch it with 'agboss models fetch' (98 MB, once)" if fetched else "check the path of the GGUF file",
        model=spec.model,
        path=str(path),
    )


def _library() -> Any:
    # Read by the OpenMP runtime when it loads: spinning threads would eat the event loop's processor.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtraError(
            "extra.missing",
            f"an embedded model needs the extra 'embedded', which is not installed ({error.name or error})",
            "pip install 'agboss[embedded]'",
            extra="embedded",
        ) from error
    return xllamacpp


def _run(
    server: Any,
    body: dict[str, Any],
    stream: ChatStream,
    stop: threading.Event,
    on_text: Callable[[str], None] | None,
) -> Callable[[], None]:
    def receive(chunk: dict[str, Any]) -> bool:
        if stop.is_set():
            return True
        # The library drops what a callback raises.
        try:
            piece = stream.take(chunk)
            if piece and on_text is not None:
                anyio.from_thread.run_sync(on_text, piece)
        except Exception as error:
            stream.raised = error
            return True
        return False

    def work() -> None:
        try:
            server.handle_chat_completions(body, receive)
        except (RuntimeError, ValueError, TypeError) as error:
            stream.error, stream.error_type = text_of(error), type(error).__name__

    return work
