"""The description of the API is the API: checked in, complete, and tried by a machine."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from integration.api.conftest import Served
from ramherd.api.openapi import describe
from ramherd.api.response_shapes import SCHEMAS
from ramherd.core.errors import UsageError

schemathesis = pytest.importorskip("schemathesis")
openapi_checks = pytest.importorskip("schemathesis.specs.openapi.checks")
SCHEMA = schemathesis.openapi.from_dict(describe())


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=40, deadline=None, database=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_whatever_is_asked_is_answered_as_described(case: Any, shared_api: Served) -> None:
    """No 5xx, and status, headers, type and shape are those of the description; what that allows is
    accepted, what it does not allow is refused.
    """
    response = case.call(
        base_url=f"http://127.0.0.1:{shared_api.port}", timeout=10,
        headers={"Authorization": f"Bearer {shared_api.token}"},
    )  # fmt: skip
    case.validate_response(response, excluded_checks=unjudged(case))


def unjudged(case: Any) -> list[Any]:
    """Whether a directory, a program or an agent is there is not for a description to say: a herd
    that it allows may be refused.
    """
    is_submit = (case.operation.method.upper(), case.operation.path) == ("POST", "/v1/herds")
    return [openapi_checks.positive_data_acceptance] if is_submit else []


@pytest.mark.parametrize(
    ("job", "is_valid"),
    [
        ({"command": "true"}, True),
        ({"command": ["true", ""]}, True),
        ({"command": ""}, False),
        ({"command": " \n"}, False),
        ({"command": []}, False),
        ({"command": [""]}, False),
        ({"prompt": " ", "agent": "claude"}, False),
    ],
)
def test_a_command_without_words_is_described_as_wrong(
    job: dict[str, Any], is_valid: bool, shared_api: Served
) -> None:
    """And refused."""
    import jsonschema_rs

    assert jsonschema_rs.is_valid(SCHEMAS["NewJob"], job) is is_valid
    try:
        shared_api.client.submit([{"cwd": "/", **job}])
    except UsageError:
        assert not is_valid
    else:
        assert is_valid
