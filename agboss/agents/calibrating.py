"""Comparing our estimate of a request with what its provider counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agboss.agents.plan import AgentPlan
from agboss_memory.fit import estimate, estimate_most
from agboss_memory.messages import Message
from agboss_memory.tokens import OFFLOAD_CHARACTERS, is_loaded
from agboss_memory.tokens.calibration import SMALL

NEAR = 4
"""A request whose bound is above this part of the window is worth a vocabulary."""


async def calibrate(plan: AgentPlan, messages: Sequence[Message], fixed: Sequence[str], reported: int) -> None:
    """Learn from one request, where that can matter.

    Loading a vocabulary stops every Tern of the process for up to a second: it waits until a request comes near the
    model's window.

    Args:
        plan: The agent.
        messages: What its model was shown.
        fixed: System text and tool schemas.
        reported: Input tokens that the provider counted.
    """
    model, counter = plan.model, plan.counter()
    most, loaded = estimate_most(messages, fixed=fixed), is_loaded(counter)
    if most < SMALL or (not loaded and (model.window is None or most * NEAR < model.window)):
        return
    if loaded and most <= OFFLOAD_CHARACTERS:
        estimated = estimate(messages, counter, fixed=fixed)
    else:
        estimated = await asyncio.to_thread(estimate, messages, counter, fixed=fixed)
    model.calibration.observe(estimated, reported)
