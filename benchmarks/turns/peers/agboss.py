"""agboss: a workflow of one agent; turn memory of the last 10 Terns; the SQLite store."""

from core import WINDOW, Peer

import agboss_memory.stores.sqlite.store  # its import belongs to the imports, which M3 does not count
from agboss import (
    AnswerFinish,
    Compaction,
    Defaults,
    History,
    ModelReply,
    TaskStart,
    agent,
    chain,
    create_app,
    workflow,
)


class Stub:
    """The harness's model behind the seam that every model has."""

    def __init__(self, stub):
        self.stub = stub

    async def generate(self, request):
        def chars():
            return sum(len(message.content) for message in request.messages)

        if request.purpose == "compaction":
            return ModelReply(text=await self.stub.summary(chars))
        return ModelReply(text=await self.stub.reply(len(request.messages), chars))


@agent(model="ollama:stub", prompt="Be helpful.")
class Helper: ...


@workflow(name="plain", flow=[chain(TaskStart, Helper, AnswerFinish)], defaults=Defaults(history=History(limit=WINDOW)))
class Plain: ...


@workflow(
    name="compacting",
    flow=[chain(TaskStart, Helper, AnswerFinish)],
    defaults=Defaults(history=History(limit=10)),
    compaction=Compaction(every=20, keep=3),
)
class Compacting: ...


class Agboss(Peer):
    name = "agboss"
    venv = "agboss"
    dists = ("agboss",)
    measures = "M1 M2 M3 M4 M5 M6"
    note = (
        "one user message holds the window, so msgs_sent is 1; M2 with synchronous=NORMAL, as the floor; "
        "M6 with Compaction(every=20, keep=3)"
    )
    hello = """
import asyncio
from agboss import agent, create_app, ModelReply
class M:
    async def generate(self, request): return ModelReply(text="hi")
@agent(model="ollama:stub", prompt="x")
class A: ...
async def main():
    async with create_app(A, store="memory://", models={"ollama:stub": M()}) as app:
        print((await app.execute("hello")).answer)
asyncio.run(main())
"""

    async def open(self, store, compact):
        url = f"sqlite:///{store}/agboss.db?synchronous=NORMAL" if store else "memory://"
        self.app = create_app(Compacting if compact else Plain, store=url, models={"ollama:stub": Stub(self.stub)})
        await self.app.__aenter__()

    async def turn(self, thread, text):
        return (await self.app.execute(TaskStart, text, thread=thread, create_thread=True)).answer

    async def close(self):
        await self.app.aclose()


class AgbossFull(Agboss):
    name = "agboss_full"
    measures = "M2"
    note = "the default, synchronous=FULL: an acknowledged Tern survives a power loss"
    hello = ""

    async def open(self, store, compact):
        self.app = create_app(Plain, store=f"sqlite:///{store}/agboss.db", models={"ollama:stub": Stub(self.stub)})
        await self.app.__aenter__()
