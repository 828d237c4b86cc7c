"""Tool results: capped when stored, shortened in views, always to be had in full."""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss_memory.tool_results.caps import KEPT_RESULTS, MAX_RESULT_CHARS, capped
    from agboss_memory.tool_results.fetch import FETCH_TOOL_RESULT, fetch_tool_result, holds_stub
    from agboss_memory.tool_results.stubs import evicted_stub, model_stub, rule_stub
else:
    __getattr__ = later(
        __name__,
        {
            "agboss_memory.tool_results.caps": (
                "KEPT_RESULTS",
                "MAX_RESULT_CHARS",
                "capped",
            ),
            "agboss_memory.tool_results.fetch": (
                "FETCH_TOOL_RESULT",
                "fetch_tool_result",
                "holds_stub",
            ),
            "agboss_memory.tool_results.stubs": (
                "evicted_stub",
                "model_stub",
                "rule_stub",
            ),
        },
    )

__all__ = [
    "FETCH_TOOL_RESULT",
    "KEPT_RESULTS",
    "MAX_RESULT_CHARS",
    "capped",
    "evicted_stub",
    "fetch_tool_result",
    "holds_stub",
    "model_stub",
    "rule_stub",
]
