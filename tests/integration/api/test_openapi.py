"""The description of the API is the API: checked in, complete, and tried by a machine."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from integration.api.conftest import Served
from ramherd.api.openapi import describe

schemathesis = pytest.importorskip("schemathesis")
SCHEMA = schemathesis.openapi.from_dict(describe())


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=40, deadline=None, database=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_whatever_is_asked_is_answered_as_described(case: Any, shared_api: Served) -> None:
    """No 5xx, and status, type and shape are those of the description."""
    response = case.call(
        base_url=f"http://127.0.0.1:{shared_api.port}", timeout=10,
        headers={"Authorization": f"Bearer {shared_api.token}"},
    )  # fmt: skip
    checks = schemathesis.checks
    case.validate_response(
        response,
        checks=[
            checks.not_a_server_error,
            schemathesis.specs.openapi.checks.status_code_conformance,
            schemathesis.specs.openapi.checks.content_type_conformance,
            schemathesis.specs.openapi.checks.response_schema_conformance,
        ],
    )
