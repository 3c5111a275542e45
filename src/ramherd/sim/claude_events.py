"""A fake Claude Code: it calls a model on loopback, and prints the events that claude prints.

Used as `agent_program`, it takes claude's arguments, and its prompt on stdin. It sends requests to
`$ANTHROPIC_BASE_URL/v1/messages` and runs the commands that the model asks for, until a reply asks
for none: that is its result. After a 429 with the headers of a usage limit it prints the event of
that limit, and ends as claude does. It is fast and small, while the real program takes half a
second of CPU and 110 MB, so hundreds of jobs run in a minute.

Three variables of the environment make it more like the real one: FAKE_CLAUDE_WORK_S (seconds of
work after each reply), FAKE_CLAUDE_BYTES (memory that it holds), FAKE_CLAUDE_SESSIONS (a directory:
a session that is resumed continues after the last tool call that was answered).
"""

import json
import os
import socket
import sys
import time
from typing import Any

PREFIX = "anthropic-ratelimit-unified-"
SESSION = ("--session-id", "--resume")
Message = dict[str, Any]


def main() -> int:
    session, model = find_option(*SESSION) or "s-1", find_option("--model") or "fake"
    prompt = sys.stdin.read()
    held = bytearray(int(os.environ.get("FAKE_CLAUDE_BYTES", "0")))
    emit(type="system", subtype="init", session_id=session)
    talk = [*load_talk(session), {"role": "user", "content": prompt}]
    save_talk(session, talk)
    status, headers, reply = ask(os.environ["ANTHROPIC_BASE_URL"], talk, model)
    while status == 200:
        time.sleep(float(os.environ.get("FAKE_CLAUDE_WORK_S", "0")))
        emit(type="assistant", message=reply)
        results = [run_call(part) for part in reply["content"] if part["type"] == "tool_use"]
        if not results:
            said = "".join(part["text"] for part in reply["content"] if part["type"] == "text")
            emit(type="result", subtype="success", result=said, session_id=session)
            del held
            return 0
        emit(type="user", message={"role": "user", "content": results})
        talk += [
            {"role": "assistant", "content": reply["content"]},
            {"role": "user", "content": results},
        ]
        save_talk(session, talk)
        status, headers, reply = ask(os.environ["ANTHROPIC_BASE_URL"], talk, model)
    return fail(status, headers, session)


def fail(status: int, headers: dict[str, str], session: str) -> int:
    if f"{PREFIX}reset" in headers:
        limit = {
            "status": headers[f"{PREFIX}status"],
            "resetsAt": int(headers[f"{PREFIX}reset"]),
            "rateLimitType": headers[f"{PREFIX}representative-claim"],
        }
        emit(type="rate_limit_event", rate_limit_info=limit, session_id=session)
    text = "You've hit your 5-hour limit" if status == 429 else f"API Error: {status}"
    emit(type="result", subtype="success", is_error=True, api_error_status=status, result=text)
    return 1


def find_option(*names: str) -> str:
    words = sys.argv[1:]
    return next((words[at + 1] for at, word in enumerate(words) if word in names), "")


def emit(**event: object) -> None:
    print(json.dumps(event), flush=True)


def load_talk(session: str) -> list[Message]:
    try:
        with open(talk_path(session), encoding="utf-8") as file:
            return list(json.load(file))
    except FileNotFoundError:
        return []


def save_talk(session: str, talk: list[Message]) -> None:
    """A tool call is saved with its result: one that was cut off is not part of the session."""
    if not (path := talk_path(session)):
        return
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(talk, file)
    os.replace(f"{path}.new", path)


def talk_path(session: str) -> str:
    folder = os.environ.get("FAKE_CLAUDE_SESSIONS")
    return os.path.join(folder, f"{session}.json") if folder else ""


def run_call(call: Message) -> Message:
    """Runs the command of the Bash tool. `subprocess` takes 10 ms to import."""
    read_end, write_end = os.pipe()
    argv = ["/bin/sh", "-c", call["input"]["command"]]
    actions = [(os.POSIX_SPAWN_DUP2, write_end, 1), (os.POSIX_SPAWN_DUP2, write_end, 2)]
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    os.close(write_end)
    with open(read_end, encoding="utf-8", errors="replace") as pipe:
        printed = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": printed}
    return result if code == 0 else {**result, "content": f"Exit code {code}", "is_error": True}


def ask(url: str, talk: list[Message], model: str) -> tuple[int, dict[str, str], Message]:
    """Status, headers and body of the answer; `http.client` takes 30 ms to import."""
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    body = json.dumps({"model": model, "messages": talk, "tools": [{"name": "Bash"}]})
    head = f"POST /v1/messages HTTP/1.0\r\nHost: {host}\r\nContent-Length: {len(body.encode())}"
    with socket.create_connection((host, int(port)), timeout=600) as link:
        link.sendall(f"{head}\r\n\r\n{body}".encode())
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    top, _, content = answer.partition(b"\r\n\r\n")
    first, *lines = top.decode().split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    return int(first.split()[1]), headers, json.loads(content)


if __name__ == "__main__":
    sys.exit(main())
