"""A fake Claude Code: it calls a model on loopback, and prints the events that claude prints.

Used as `agent_program`, it takes claude's arguments, and its prompt on stdin. It sends one request
to `$ANTHROPIC_BASE_URL/v1/messages`: the reply is its result. After a 429 with the headers of a
usage limit it prints the event of that limit, and ends as claude does. It is fast and small, while
the real program takes half a second of CPU and 110 MB, so hundreds of jobs run in a minute.
"""

import json
import os
import socket
import sys
import time

PREFIX = "anthropic-ratelimit-unified-"


def main() -> int:
    session, model = find_option(*SESSION) or "s-1", find_option("--model") or "fake"
    prompt = sys.stdin.read()
    emit(type="system", subtype="init", session_id=session)
    status, headers = ask(os.environ["ANTHROPIC_BASE_URL"], prompt, model)
    if status == 200:
        time.sleep(float(os.environ.get("FAKE_CLAUDE_WORK_S", "0")))
        reply = {"id": f"msg-{session}", "content": [{"type": "text", "text": "Done."}]}
        emit(type="assistant", message=reply)
        emit(type="result", subtype="success", result="Done.", session_id=session)
        return 0
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


SESSION = ("--session-id", "--resume")


def find_option(*names: str) -> str:
    words = sys.argv[1:]
    return next((words[at + 1] for at, word in enumerate(words) if word in names), "")


def emit(**event: object) -> None:
    print(json.dumps(event), flush=True)


def ask(url: str, prompt: str, model: str) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to one request; `http.client` takes 30 ms to import."""
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    message = {"role": "user", "content": prompt}
    body = json.dumps({"model": model, "messages": [message], "tools": [{"name": "Bash"}]})
    head = f"POST /v1/messages HTTP/1.0\r\nHost: {host}\r\nContent-Length: {len(body.encode())}"
    with socket.create_connection((host, int(port)), timeout=60) as link:
        link.sendall(f"{head}\r\n\r\n{body}".encode())
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    first, *lines = answer.split(b"\r\n\r\n")[0].decode().split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return int(first.split()[1]), {name.strip().lower(): value.strip() for name, value in pairs}


if __name__ == "__main__":
    sys.exit(main())
