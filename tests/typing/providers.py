"""What is provided fits its key. Each ``type: ignore`` must be needed: checkers report one that is not."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol, assert_type

from agboss import InjectionToken, provide, provide_class, provide_factory
from agboss.components.injection import Provider


class Facts(Protocol):
    def add(self, text: str) -> None: ...


class MemoryFacts:
    def add(self, text: str) -> None: ...


class Other: ...


FACTS = InjectionToken[Facts]("FACTS")
PATH = InjectionToken[str]("PATH")

assert_type(provide(FACTS, MemoryFacts()), Provider)
assert_type(provide(PATH, "facts.db"), Provider)
assert_type(provide(Other, Other()), Provider)
assert_type(provide_class(Other), Provider)
assert_type(provide_class(FACTS, MemoryFacts), Provider)

provide(PATH, 3)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
provide(FACTS, Other())  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def open_facts() -> AsyncGenerator[MemoryFacts]:
    yield MemoryFacts()


assert_type(provide_factory(FACTS, open_facts), Provider)
assert_type(provide_factory(FACTS, MemoryFacts, scope="tern"), Provider)
