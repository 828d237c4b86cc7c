"""The OpenAPI document is true: what it says is what happens, to whatever is sent."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import httpx2
import pytest
import schemathesis
import schemathesis.checks
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks
from serving import serving

from agboss.server.application import ENDPOINTS
from agboss.server.openapi import openapi

SCHEMA: Any = schemathesis.openapi.from_dict(openapi(ENDPOINTS))
_OPENAPI: Any = checks
_ALL: Any = schemathesis.checks
CHECKS = [
    _ALL.not_a_server_error,
    _OPENAPI.status_code_conformance,
    _OPENAPI.content_type_conformance,
    _OPENAPI.response_schema_conformance,
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with serving(tmp_path_factory.mktemp("served"), "--store", "memory://", "--rate-limit", "0") as server:
        yield server.url


@pytest.fixture(scope="module")
def thread(url: str) -> str:
    made: str = httpx2.post(f"{url}/threads").json()["id"]
    httpx2.post(f"{url}/threads/{made}/terns", json={"input": "My name is Ada."}, timeout=60)
    return made


@SCHEMA.parametrize()
@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_every_answer_is_as_the_document_says(case: Any, url: str, thread: str) -> None:
    if "thread" in case.path_parameters and case.method != "DELETE":
        case.path_parameters["thread"] = thread
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=30)


def test_the_document_says_where_it_is_asked_for(url: str) -> None:
    told = httpx2.get(f"{url}/openapi.json").json()
    assert told == openapi(ENDPOINTS)
    assert told["openapi"] == "3.1.0"
    names = [one["operationId"] for path in told["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(ENDPOINTS)
