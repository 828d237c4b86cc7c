"""A server on the loopback that speaks OpenAI's chat completions and answers what a test scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "total_tokens": 25,
    "prompt_tokens_details": {"cached_tokens": 12},
}


@dataclass(frozen=True)
class Reply:
    """One scripted answer.

    Attributes:
        text: The answer.
        calls: Tool calls as (id, name, arguments).
        status: HTTP status; above 399 the body is ``body``.
        body: Body of an error, JSON.
        headers: Further headers.
        reasoning: Reasoning text.
        usage: Usage as reported.
        finish_reason: The provider's word.
        hang: Answer nothing until the server stops, after ``hang_after`` pieces of a stream.
        broken: Close the connection after the first piece of a stream (or before any answer).
    """

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    reasoning: str = ""
    usage: Mapping[str, Any] = field(default_factory=lambda: USAGE)
    finish_reason: str = "stop"
    hang: bool = False
    broken: bool = False


class FakeOpenAI:
    """Records requests and answers them in order; the last reply is given again and again."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.arrived = threading.Event()
        self.stopping = threading.Event()
        self.base_url = ""

    def script(self, *replies: Reply | str) -> FakeOpenAI:
        self.replies.extend(Reply(text=reply) if isinstance(reply, str) else reply for reply in replies)
        return self

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def fake_openai() -> Generator[FakeOpenAI]:
    """Run a server on a free port until the block ends."""
    fake = FakeOpenAI()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    server.daemon_threads = True
    fake.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    fake: FakeOpenAI
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.fake.requests.append(body)
        self.fake.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.fake.arrived.set()
        reply = self.fake.next_reply()
        try:
            self.answer(body, reply)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, body: dict[str, Any], reply: Reply) -> None:
        if reply.status >= 400:
            self.send_json(reply.status, reply.body, reply.headers)
        elif body.get("stream"):
            self.stream(reply, str(body["model"]))
        elif reply.broken or reply.hang:
            if reply.hang:
                self.fake.stopping.wait(30)
            self.close_connection = True
        else:
            self.send_json(200, _completion(reply, str(body["model"])), reply.headers)

    def send_json(self, status: int, value: Any, headers: Mapping[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, reply: Reply, model: str) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for chunk in _chunks(reply, model):
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
            if reply.hang:
                self.fake.stopping.wait(30)
            if reply.hang or reply.broken:
                return
        self.wfile.write(b"data: [DONE]\n\n")


def _completion(reply: Reply, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call(*call) for call in reply.calls]
    finish = "tool_calls" if reply.calls else reply.finish_reason
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": dict(reply.usage),
    }


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _chunks(reply: Reply, model: str) -> Iterator[dict[str, Any]]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas: list[dict[str, Any]] = []
    if reply.reasoning:
        deltas.append({"reasoning_content": reply.reasoning})
    size = max(1, len(reply.text) // 3)
    deltas.extend({"content": reply.text[at : at + size]} for at in range(0, len(reply.text), size))
    deltas.extend({"tool_calls": [{"index": at, **_call(*call)}]} for at, call in enumerate(reply.calls))
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]}
    finish = "tool_calls" if reply.calls else reply.finish_reason
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    yield {**head, "choices": [], "usage": dict(reply.usage)}
