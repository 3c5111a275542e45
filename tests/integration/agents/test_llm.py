"""The language model of the tests: scripts, and four dialects of one conversation."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from llm import LLM
from llm.script import SCRIPTS, check, place_in
from llm.talk import Said
from llm.text import sample

SHELL = {
    "anthropic": {"name": "Bash", "input_schema": {}},
    "responses": {"type": "function", "name": "exec_command"},
    "chat": {"type": "function", "function": {"name": "bash"}},
    "gemini": {"functionDeclarations": [{"name": "run_shell_command"}]},
}
PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
}


@pytest.fixture
def llm() -> Iterator[LLM]:
    with LLM() as made:
        yield made


def post(llm: LLM, path: str, body: Any) -> tuple[int, str]:
    link = HTTPConnection("127.0.0.1", int(llm.url.rpartition(":")[2]), timeout=10)
    link.request("POST", path, json.dumps(body))
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text


def asking(api: str, prompt: str, *, stream: bool = False) -> dict[str, Any]:
    tools = [SHELL[api]]
    if api == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": prompt}]}], "tools": tools}
    said = "input" if api == "responses" else "messages"
    return {said: [{"role": "user", "content": prompt}], "tools": tools, "stream": stream}


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_each_dialect_calls_the_shell_tool_that_is_offered(
    llm: LLM, api: str, stream: bool
) -> None:
    """The same script is a call of another tool for each CLI, in one piece or in a stream."""
    path = PATHS[api]
    if stream and api == "gemini":
        path = path.replace(":g", ":streamG")
    status, text = post(llm, path, asking(api, "[script shell]", stream=stream))

    assert status == 200
    assert stream or "from-the-shell" in text
    assert ("data: " in text) is stream
    assert [(talk.api, talk.kind, talk.step) for talk in llm.talks] == [(api, "main", 0)]


@pytest.mark.parametrize("api", PATHS)
def test_it_fails_as_often_as_the_script_says(llm: LLM, api: str) -> None:
    """Overloaded twice, then the reply."""
    body = asking(api, "[script overload]")

    assert [post(llm, PATHS[api], body)[0] for _try in range(3)] == [529, 529, 200]


def test_a_request_without_tools_is_aside(llm: LLM) -> None:
    """Titles and checks do not move a script on; JSON is given where a schema is asked for."""
    schema = {"type": "OBJECT", "properties": {"choice": {"type": "STRING", "enum": ["a", "b"]}}}
    body = asking("gemini", "[script shell]") | {"generationConfig": {"responseSchema": schema}}
    del body["tools"]
    _status, text = post(llm, PATHS["gemini"], body)

    assert llm.talks[0].kind == "side"
    assert "choice" in text


def test_a_script_that_nobody_can_follow_is_said_to_the_agent(llm: LLM) -> None:
    """No shell tool offered: an error of the request, with the tools that there are."""
    body = asking("anthropic", "[script shell]") | {"tools": [{"name": "Read"}]}
    status, text = post(llm, PATHS["anthropic"], body)

    assert status == 400
    assert "none of the tools runs a command: Read" in text


def test_a_gate_holds_the_reply_until_it_is_opened(llm: LLM) -> None:
    """Tests await conditions: a reply comes when they say so."""
    llm.add({"gated": [{"gate": "now", "say": "open"}]})
    llm.open("now")

    assert "open" in post(llm, PATHS["chat"], asking("chat", "[script gated]"))[1]


def test_an_unknown_key_of_a_step_is_refused() -> None:
    """A misspelt step would be a test of nothing."""
    with pytest.raises(ValueError, match="unknown \\['sya'\\]"):
        check({"wrong": [{"sya": "Hello."}]})


@pytest.mark.parametrize(
    ("talk", "step"),
    [
        ("", 0),
        ("call result", 1),
        ("call", 0),  # killed in it, and resumed
        ("call user", 0),
        ("call result user", 1),
        ("call result said", 2),
        ("call result said user", 2),
        ("call result model user", 1),  # not what the script says: the CLI's own words
        ("model call result", 1),
    ],
)
def test_the_step_is_told_from_the_conversation(talk: str, step: int) -> None:
    """Answered calls and texts that ended a turn are behind; an open call is not."""
    words = {"said": Said("model", "The shell said it.")}
    heard = [words.get(who, Said(who, "No response.")) for who in talk.split()]

    assert place_in(SCRIPTS["shell"], heard) == step


def test_several_calls_of_one_step_need_all_their_results() -> None:
    """Two subagents, one back: the step is still under way."""
    one_back = [Said("call"), Said("call"), Said("result")]

    assert place_in(SCRIPTS["agents"], one_back) == 0
    assert place_in(SCRIPTS["agents"], [*one_back, Said("result")]) == 1


def test_a_sample_fits_its_schema() -> None:
    """Numbers, truths, lists and texts at their plainest."""
    kinds = {"n": "number", "i": "INTEGER", "b": "boolean", "a": "array", "s": "string"}
    schema = {"type": "object", "properties": {k: {"type": kind} for k, kind in kinds.items()}}

    assert sample(schema) == {"n": 1, "i": 1, "b": False, "a": [], "s": "ok"}
