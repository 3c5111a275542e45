"""The head of a request: allowed and unambiguous, or one line that says why not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramherd.api.auth import check_browser, check_token, is_same
from ramherd.api.request_head import MOST_BODY_BYTES, HttpError, parse_head

ODD = st.sampled_from(
    [b"GET", b" ", b"/", b"/v1/jobs", b"?a=b", b"%00", b"%", b"HTTP/1.1", b"HTTP/2.0", b"\r\n",
     b"\n", b"Host:", b"x", b"Content-Length: ", b"-1", b"1e3", b"\xff", b"\0", b":", b"\t"]
)  # fmt: skip


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(st.lists(ODD | st.binary(max_size=6), max_size=12).map(b"".join))
def test_any_bytes_are_a_request_or_an_error_of_the_client(data: bytes) -> None:
    """Nothing else is raised, and no error says that it is ours."""
    try:
        status = 200 if 0 <= parse_head(data).length <= MOST_BODY_BYTES else 0
    except HttpError as error:
        status = error.status
    assert status in (200, 400, 411, 413, 431, 505)


def test_a_head_is_taken_apart() -> None:
    """Path and query are decoded, names of fields are lower case."""
    head = b"GET /v1/jobs/a%2Fb?herd=x%20y&limit= HTTP/1.1\r\nHost: here\r\nX-A:  b c \r\nA:"
    request = parse_head(head)

    assert (request.method, request.path) == ("GET", ("v1", "jobs", "a/b"))
    assert request.query == {"herd": "x y", "limit": ""}
    assert request.headers == {"host": "here", "x-a": "b c", "a": ""}
    assert request.length == 0


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET  / HTTP/1.1", 400),
        (b"GET / HTTP/2.0", 505),
        (b"GET http://x/ HTTP/1.1", 400),
        (b"GET /%ff HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nA: b\r\n c", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", 400),
        (b"GET / HTTP/1.1\r\nA : b", 400),
        (b"GET / HTTP/1.1" + b"\r\nA: b" * 65, 431),
        (b"POST / HTTP/1.1\r\nContent-Length: +5", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999", 413),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(head: bytes, status: int) -> None:
    """Each with the status that says why."""
    with pytest.raises(HttpError) as caught:
        assert parse_head(head).length is None
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("headers", "port"),
    [
        ({"host": "evil.example:80"}, 80),
        ({}, 80),
        ({"host": "127.0.0.1:80", "origin": "http://evil.example"}, 80),
        ({"host": "127.0.0.1:80", "origin": "null"}, 80),
        ({"origin": "http://127.0.0.1"}, None),
    ],
)
def test_web_pages_are_refused(headers: dict[str, str], port: int | None) -> None:
    """A page may send requests to any port, and have its name point to 127.0.0.1."""
    with pytest.raises(HttpError) as caught:
        check_browser(headers, port)
    assert caught.value.status == 403


def test_programs_are_let_in() -> None:
    """They send no Origin, or our own."""
    check_browser({"host": "localhost:80", "origin": "http://localhost:80"}, 80)
    check_browser({"host": "127.0.0.1:80"}, 80)
    check_browser({"host": "whatever"}, None)


@pytest.mark.parametrize("given_", ["", "Bearer", "Bearer x", "Basic secret", "Bearer secret2"])
def test_a_wrong_token_is_none(given_: str) -> None:
    """Compared in a time that tells nothing."""
    with pytest.raises(HttpError) as caught:
        check_token({"authorization": given_}, "secret")
    assert caught.value.status == 401
    check_token({"authorization": "bearer secret"}, "secret")
    assert is_same(b"", b"")
    assert not is_same(b"", b"\0")
