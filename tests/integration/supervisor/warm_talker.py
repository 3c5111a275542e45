"""Talks like a claude, also like one that takes one prompt after another. Its answer is its pid,
and all that it was asked in this session: nobody else's prompt may be in it.

A prompt is made of words: `leave` starts a process that stays, `grow` takes 200 MiB, `die` ends it
after the answer, `fail` makes a failure of it, `wait` takes long, `slow` two seconds. With
TALKER=same it never gets a new session.
"""

import json
import os
import subprocess
import sys
import time
import uuid


def say(kind: str, **values: object) -> None:
    print(json.dumps({"type": kind, "session_id": session, **values}), flush=True)


def answer(prompt: str) -> None:
    words = prompt.split()
    if "leave" in words:
        subprocess.Popen(["sleep", "300"], start_new_session=True, stdout=subprocess.DEVNULL)
    if "grow" in words:
        held.append(b"x" * (200 << 20))
    if "wait" in words or "slow" in words:
        time.sleep(300 if "wait" in words else 2)
    asked.append(prompt[:40])
    message = {"id": str(uuid.uuid4()), "content": [], "usage": {"input_tokens": len(prompt)}}
    say("assistant", message=message)
    text = f"{os.getpid()} {' | '.join(asked)}"
    say("result", result=text, is_error="fail" in words, total_cost_usd=0.5)
    if "die" in words:
        sys.exit(0)


session = str(uuid.uuid4())
asked: list[str] = []
held: list[bytes] = []
if "--input-format" not in sys.argv:
    say("system", subtype="init")
    answer(sys.stdin.read())
    sys.exit(0)
for line in sys.stdin:
    prompt = json.loads(line)["message"]["content"]
    fresh = prompt == "/clear"
    if fresh and os.environ.get("TALKER") != "same":
        session, asked = str(uuid.uuid4()), []
    say("system", subtype="init")
    if fresh:
        say("result", result="", num_turns=0, total_cost_usd=0)
    else:
        answer(prompt)
