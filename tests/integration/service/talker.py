"""A program that talks like claude: it notes how it was asked, is in a tool until it may go on, and
says its result.
"""

from pathlib import Path

SCRIPT = """\
#!/bin/sh
for word; do
    case "$before" in --session-id | --resume) how=$before session=$word ;; esac
    before=$word
done
echo "$how $session $(cat)" >> HERE/asked
echo "$BUN_JSC_forceRAMSize" >> HERE/heaps
say() { printf '%s\\n' "$1"; }
say '{"type": "system", "subtype": "init", "session_id": "'$session'"}'
usage='"usage": {"input_tokens": 10, "output_tokens": 2}'
tool='{"type": "tool_use", "id": "t1", "name": "Bash"}'
say '{"type": "assistant", "message": {"id": "m1", '"$usage"', "content": ['"$tool"']}}'
while ! [ -e HERE/go ]; do sleep 0.02; done
if [ -n "$FULL" ] && [ "$RAMHERD_ATTEMPT" = 1 ]; then
    echo "FATAL ERROR: JavaScript heap out of memory" >&2
    exit 134
fi
say '{"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1"}]}}'
[ -z "$WRITE" ] || echo new > "$WRITE"
[ -n "$SILENT" ] ||
    say '{"type": "result", "result": "Through.", "total_cost_usd": '${COST:-0.5}'}'
"""


class Talker:
    def __init__(self, here: Path) -> None:
        self.here = here
        self.program = here / "claude"
        self.program.write_text(SCRIPT.replace("HERE", str(here)))
        self.program.chmod(0o755)

    def go(self) -> None:
        (self.here / "go").touch()

    @property
    def heaps(self) -> list[int]:
        """What each start was told that it may hold."""
        return [int(line) for line in (self.here / "heaps").read_text().split()]

    @property
    def asked(self) -> list[list[str]]:
        """Of each start: how, in which session, what."""
        noted = self.here / "asked"
        lines = noted.read_text().splitlines() if noted.exists() else []
        return [line.split(" ", 2) for line in lines]
