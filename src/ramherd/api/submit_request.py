"""A request that submits a herd: its body, and the threads that read it.

The body of a large request goes to a file without a name in the state directory, chunk by chunk:
forty clients that send slowly cost forty files, and no memory.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from starlette.requests import Request

from ramherd.api import submission
from ramherd.api.request_head import HttpError
from ramherd.api.store_threads import StoreThreads
from ramherd.api.submission import LARGE_BYTES, Submission

# A hundred thousand jobs take 10 s.
LONGEST_S = 120.0


@dataclass
class Submitter:
    rules: Submission
    threads: StoreThreads
    # Each process briefly takes 60 MB.
    _one_at_a_time: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def submit(self, request: Request) -> dict[str, Any]:
        check_json(request)
        if int(request.headers.get("content-length", "0")) < LARGE_BYTES:
            body = await request.body()
            stored = await self.threads.write(self.rules.store_commands, body)
            return stored or await self._submit_apart(asyncio.subprocess.PIPE, body)
        with closing(await self.threads.call(self._make_file)) as file:
            async for chunk in request.stream():
                await self.threads.call(file.write, chunk)
            await self.threads.call(file.seek, 0)
            return await self._submit_apart(file)

    def _make_file(self) -> IO[bytes]:
        return tempfile.TemporaryFile(dir=self.rules.state)

    async def _submit_apart(
        self, stdin: int | IO[bytes], body: bytes | None = None
    ) -> dict[str, Any]:
        """Runs a fresh process, which gets the body as its stdin."""
        async with self._one_at_a_time:
            status, value = await self._run_process(stdin, body)
        if status != 201:
            raise HttpError(status, value["error"], hint=value["hint"])
        return value

    async def _run_process(
        self, stdin: int | IO[bytes], body: bytes | None
    ) -> tuple[int, dict[str, Any]]:
        given = {"state": str(self.rules.state), "defaults": asdict(self.rules.defaults)}
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", submission.__file__, json.dumps(given),
            stdin=stdin, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            out, _err = await asyncio.wait_for(child.communicate(body), LONGEST_S)
        except TimeoutError:
            raise HttpError(503, f"the jobs were not stored within {LONGEST_S:.0f} s") from None
        finally:
            if child.returncode is None:
                child.kill()
        if child.returncode != 0:
            hint = "is there memory left?"
            raise HttpError(503, "the process that reads the jobs died", hint=hint)
        status, value = json.loads(out)
        return status, value


def check_json(request: Request) -> None:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json":
        raise HttpError(415, f"the body is {kind[:40]!r}", hint="send application/json")
