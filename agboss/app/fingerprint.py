"""A hash of what a workflow says and does: stored with every Tern, so that a change under one version is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, cast

from agboss.components.border import is_model, is_model_class
from agboss.components.model_spec import ModelSpec
from agboss.components.naming import describe
from agboss.components.workflow import WorkflowSpec
from agboss.flow import Graph
from agboss_memory.records import Record, fields


def fingerprint(spec: WorkflowSpec, graph: Graph) -> str:
    """16 hexadecimal digits over the resolved configuration, the prompts and the flow."""
    content = {
        "name": spec.name,
        "defaults": spec.defaults,
        "compaction": spec.compaction,
        "limits": spec.limits,
        "variables": spec.prompt_variables,
        "nodes": {name: [node.spec, node.targets] for name, node in graph.nodes.items()},
    }
    return hashlib.sha256(json.dumps(_stable(content), sort_keys=True).encode()).hexdigest()[:16]


def _stable(value: Any) -> Any:
    """The value as JSON-ready data that is the same in every process. No schema is built for it."""
    if value is None or isinstance(value, str | int | float):
        return value
    if is_model(value):
        return {name: _stable(item) for name, item in vars(value).items()}
    if isinstance(value, ModelSpec):
        return {name: _stable(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Record):
        return {name: _stable(getattr(value, name)) for name in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _stable(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_stable(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, set | frozenset):
        return sorted(map(str, cast("Iterable[object]", value)))
    if isinstance(value, Decimal):
        return str(value)
    if is_model_class(value):
        return value.model_json_schema()
    return describe(cast("object", value))
