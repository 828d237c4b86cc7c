"""What a user declares: decorators, settings and the records they leave.

What pydantic checks is loaded where somebody sets it.
"""

from typing import TYPE_CHECKING

from agboss_memory.later import later

if TYPE_CHECKING:
    from agboss.components.settings import (
        Compaction,
        Defaults,
        Limits,
        ModelFields,
        RouterSettings,
        Settings,
        WorkflowSettings,
    )
else:
    __getattr__ = later(
        __name__,
        {
            "agboss.components.settings": (
                "Compaction",
                "Defaults",
                "Limits",
                "ModelFields",
                "RouterSettings",
                "Settings",
                "WorkflowSettings",
            )
        },
    )

__all__ = ["Compaction", "Defaults", "Limits", "ModelFields", "RouterSettings", "Settings", "WorkflowSettings"]
