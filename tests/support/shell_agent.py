"""A program that talks like claude, and whose prompt is a script for the shell.

Resumed with a prompt it runs the file `resumed` beside it; on a terminal it runs the lines that are
typed. Without a rule for the tool it reports `denied` as a tool call that was refused.
"""

from pathlib import Path

SCRIPT = """\
#!/bin/sh
printf '%s\\n' "$*" >> 'HERE/argv'
printed=
for word; do
    case "$before" in --session-id | --resume) how=$before session=$word ;; esac
    case "$word" in -p) printed=1 ;; --allowedTools=*) allowed=1 ;; esac
    before=$word
done
if [ -z "$printed" ]; then
    echo "session $session in $PWD"
    exec sh
fi
asked=$(cat)
printf '%s\\n' "$asked" >> 'HERE/prompts'
say() { printf '%s\\n' "$1"; }
say '{"type": "system", "subtype": "init", "session_id": "'$session'"}'
if [ "$how" = --resume ]; then asked=$(cat 'HERE/resumed'); fi
denied=
sh -c "$asked" >&2 || exit 1
if [ -e 'HERE/denies' ] && [ -z "$allowed" ]; then
    denied='{"tool_name": "Bash", "tool_input": {"command": "npm test"}}'
fi
say '{"type": "result", "result": "Did it.", "permission_denials": ['"$denied"']}'
"""


class ShellAgent:
    def __init__(self, here: Path) -> None:
        self.here = here
        here.mkdir(parents=True)
        self.program = here / "claude"
        self.program.write_text(SCRIPT.replace("HERE", str(here)))
        self.program.chmod(0o755)
        self.resumes_with("true")

    def resumes_with(self, script: str) -> None:
        (self.here / "resumed").write_text(script)

    def denies(self) -> None:
        """Each run without a rule ends with a refused tool call."""
        (self.here / "denies").touch()

    @property
    def argv(self) -> list[list[str]]:
        return [line.split() for line in (self.here / "argv").read_text().splitlines()]

    @property
    def prompts(self) -> str:
        return (self.here / "prompts").read_text()
