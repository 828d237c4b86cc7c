"""Pydantic at the border: whether something is a model, asked without loading pydantic.

A program that declares no model of its own and sets nothing that pydantic has to check never loads it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from pydantic import BaseModel


def is_model(value: Any) -> TypeGuard[BaseModel]:
    """Whether a value is a model's instance. Where pydantic was never loaded, nothing is."""
    home = sys.modules.get("pydantic")
    return home is not None and isinstance(value, home.BaseModel)


def is_model_class(value: Any) -> TypeGuard[type[BaseModel]]:
    """Whether a value is a model's class."""
    home = sys.modules.get("pydantic")
    return home is not None and isinstance(value, type) and issubclass(value, home.BaseModel)
