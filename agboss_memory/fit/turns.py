"""Fit for turn memory, and the door for both: a view with an exact list of messages goes to ``fit_window``.

Whole oldest pieces go first (turns, then summaries, then recalled texts), never the task or the open tool round. What
still does not fit is cut with a visible mark, the largest tool results first, the task last.
"""

from __future__ import annotations

import agboss_memory.fit as stage  # what cuts is loaded when something has to be cut
from agboss_memory.contract import Budget, LeftOut, MemoryView, TokenCounter
from agboss_memory.errors import StrategyError
from agboss_memory.fit.estimate import PER_MESSAGE, cut_to, sizes
from agboss_memory.messages import Message
from agboss_memory.records import Record, replace
from agboss_memory.render import user_message, user_text
from agboss_memory.tokens import most_tokens

REASON = "over_window"


class FitRequest(Record, kw_only=True):
    """One request before it is sent.

    Attributes:
        agent: Name of the agent, for errors.
        view: The strategy's view.
        task: The task as text.
        results: Name and answer of nodes that ran before in this Tern.
        added: What the tool loop added in this Tern.
        fixed: System text and tool schemas.
        budget: Window, reply reserve and counter.
        tern: Number of the Tern. A view with messages of this Tern is the whole request; to any other the task and what
            the loop added are appended.
        complete: The messages of the view are the whole request in any case.
    """

    agent: str
    view: MemoryView
    task: str
    results: tuple[tuple[str, str], ...] = ()
    added: tuple[Message, ...] = ()
    fixed: tuple[str, ...] = ()
    budget: Budget
    tern: int = 0
    complete: bool = False


class Fitted(Record, kw_only=True):
    """The same request within the window.

    Attributes:
        view: The view, with ``left_out`` naming what went.
        task: The task, perhaps cut.
        added: The loop's messages, results perhaps cut.
    """

    view: MemoryView
    task: str
    added: tuple[Message, ...]


def surely_fits(request: FitRequest) -> bool:
    """Whether nothing has to be counted: the window is unknown, or there are fewer bytes than it has tokens."""
    budget = request.budget
    if request.view.messages is not None and request.tern:
        return False
    if budget.window is None or budget.counter is None:
        return True
    text = user_text(request.view, request.task, request.results)
    return roomy(budget, request.fixed, text, request.added)


def roomy(budget: Budget, fixed: tuple[str, ...], text: str, added: tuple[Message, ...] = ()) -> bool:
    """``surely_fits`` for a request whose user message has this text."""
    if budget.window is None or budget.counter is None:
        return True
    most = sum(map(most_tokens, fixed)) + most_tokens(text)
    most += sum(map(most_tokens, _loop_texts(added))) if added else 0
    return most + (1 + len(added)) * PER_MESSAGE + budget.reply_reserve <= budget.calibrated(budget.window)


def fit(request: FitRequest) -> Fitted:
    """Leave out and cut until the request fits. Does nothing when the window is unknown.

    Raises:
        StrategyError: ``memory.fixed-overhead``: system text, schemas and reply reserve alone fill the window;
            ``memory.open-round``: the task and what the loop added do not fit, however they are cut.
    """
    if request.view.messages is not None and request.tern:
        return _fit_exact(request, request.view.messages)
    budget = request.budget
    if budget.window is None or budget.counter is None or surely_fits(request):
        return Fitted(view=request.view, task=request.task, added=request.added)
    counter = budget.counter
    window = budget.calibrated(budget.window)
    fixed = sum(counter.count(list(request.fixed))) + budget.reply_reserve
    room = window - fixed - PER_MESSAGE
    if room <= 0:
        raise StrategyError(
            "memory.fixed-overhead",
            f"agent {request.agent!r}: system text, tool schemas and reply reserve take {fixed} tokens, "
            f"the window has {window}",
            "shorten the prompt, offer fewer tools, lower max_tokens, or set context_window=",
            fixed=fixed,
            window=window,
        )
    return _shrink(request, counter, room)


def _fit_exact(request: FitRequest, messages: tuple[Message, ...]) -> Fitted:
    if not request.complete and not any(message.tern == request.tern for message in messages):
        task = user_message(MemoryView(recalled=request.view.recalled), request.task, request.results)
        messages += tuple(replace(message, tern=request.tern) for message in (task, *request.added))
    view = replace(request.view, messages=messages)
    fitted = stage.fit_window(
        stage.WindowFit(agent=request.agent, view=view, fixed=request.fixed, budget=request.budget)
    )
    return Fitted(view=fitted, task=request.task, added=request.added)


def _shrink(request: FitRequest, counter: TokenCounter, room: int) -> Fitted:
    loop = sum(sizes(request.added, counter))
    view, over = request.view, 0
    while (over := _count_view(request, view, counter) + loop - room) > 0 and _can_drop(view):
        view = _drop(view, over, counter)
    if over <= 0:
        return Fitted(view=view, task=request.task, added=request.added)
    added = stage.cut_messages(request.added, over, counter, roles=("tool",))
    task = _cut_task(replace(request, view=view, added=added), counter, room)
    made = replace(request, view=view, task=task, added=added)
    over = _over(made, counter, room)
    if over > 0:
        made = replace(made, added=stage.cut_messages(added, over, counter))
        over = _over(made, counter, room)
    if over > 0:
        raise stage.no_room(request.agent, room, over)
    return Fitted(view=made.view, task=made.task, added=made.added)


def _cut_task(request: FitRequest, counter: TokenCounter, room: int) -> str:
    """The task, cut as far as it takes; its rendering may round to another token than it has alone."""
    task = request.task
    while (over := _over(replace(request, task=task), counter, room)) > 0:
        (tokens,) = counter.count([task])
        shorter = cut_to(task, max(tokens - over, 0), counter)
        if counter.count([shorter])[0] >= tokens:
            break
        task = shorter
    return task


def _over(request: FitRequest, counter: TokenCounter, room: int) -> int:
    return _count_view(request, request.view, counter) + sum(sizes(request.added, counter)) - room


def _can_drop(view: MemoryView) -> bool:
    return bool(view.history or view.summaries or view.recalled)


def _drop(view: MemoryView, over: int, counter: TokenCounter) -> MemoryView:
    """The view without its oldest turns, as many as ``over`` tokens ask for, else without its oldest other piece."""
    if view.history:
        sizes = counter.count([tern.task + tern.answer for tern in view.history])
        gone = 0
        while gone < len(sizes) and over > 0:
            over -= sizes[gone]
            gone += 1
        first, last = view.history[0].number, view.history[gone - 1].number
        left = LeftOut(first=first, last=last, reason=REASON)
        return replace(view, history=view.history[gone:], left_out=(*view.left_out, left))
    if view.summaries:
        summary = view.summaries[0]
        left = LeftOut(first=summary.first, last=summary.last, reason=REASON)
        return replace(view, summaries=view.summaries[1:], left_out=(*view.left_out, left))
    return replace(view, recalled=view.recalled[1:])


def _count_view(request: FitRequest, view: MemoryView, counter: TokenCounter) -> int:
    return counter.count([user_text(view, request.task, request.results)])[0]


def _loop_texts(added: tuple[Message, ...]) -> list[str]:
    return [text for message in added for text in (message.content, *(c.arguments for c in message.tool_calls))]
