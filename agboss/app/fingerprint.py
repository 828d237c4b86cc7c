"""A hash of what a workflow says and does: stored with every Tern, so that a change under one version is noticed."""

from __future__ import annotations

import hashlib
from typing import cast

from pydantic import BaseModel
from pydantic_core import to_json

from agboss.components.naming import describe
from agboss.components.workflow import WorkflowSpec
from agboss.flow import Graph


def fingerprint(spec: WorkflowSpec, graph: Graph) -> str:
    """16 hexadecimal digits over the resolved configuration, the prompts and the flow."""
    content = {
        "name": spec.name,
        "defaults": spec.defaults,
        "compaction": spec.compaction,
        "limits": spec.limits,
        "variables": dict(spec.prompt_variables),
        "nodes": {
            name: [{field: getattr(node.spec, field) for field in node.spec.__dataclass_fields__}, node.targets]
            for name, node in graph.nodes.items()
        },
    }
    return hashlib.sha256(to_json(content, fallback=_stable)).hexdigest()[:16]


def _stable(value: object) -> object:
    """What stands for a value that is no data: a name that is the same in every process."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    return describe(cast("object", value))
