"""Models that repeat the ids of their calls, or give none: every call still has exactly one result."""

from agboss import ModelReply, ModelRequest, agent, create_app, tool
from agboss_memory import ToolCall

MODEL = "openai:gpt-5-mini"


@tool
def look(word: str) -> str:
    """Looks a word up."""
    return f"found {word}"


@agent(model=MODEL, tools=[look])
class Looker:
    """Looks."""


class Careless:
    """Calls twice under one id, then under the same id and none, then answers."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        ids = {1: ("c", "c"), 2: ("c", "")}.get(len(self.requests), ())
        calls = tuple(
            ToolCall(id=one, name="look", arguments=f'{{"word": "{len(self.requests)}{index}"}}')
            for index, one in enumerate(ids)
        )
        return ModelReply(text="" if calls else "Done.", tool_calls=calls)


async def test_repeated_and_missing_ids_are_made_distinct() -> None:
    model = Careless()
    async with create_app(Looker, store="memory://", models={MODEL: model}) as app:
        assert (await app.execute("Go")).answer == "Done."
    sent = model.requests[-1].messages
    calls = [call.id for message in sent for call in message.tool_calls]
    results = {message.tool_call_id: message.content for message in sent if message.role == "tool"}
    assert calls == ["c", "c-2", "c-3", "call-2"]
    assert [results[one] for one in calls] == ["found 10", "found 11", "found 20", "found 21"]
