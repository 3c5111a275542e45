"""Writes our hooks into a settings file of Claude Code, and removes them."""

from pathlib import Path

from ramherd.act.edited_file import EditedFile, backup_name
from ramherd.hook.claude_settings import with_hooks, without_hooks


class SettingsFile(EditedFile):
    def __init__(self, path: Path, state: Path) -> None:
        super().__init__(path, state / "claude" / backup_name(path))

    def install(self, wait_s: float) -> bool:
        """False if our hooks already exist."""
        return self.edit(lambda text: with_hooks(text, str(self.shown), wait_s), self._without)

    def uninstall(self) -> bool:
        """False if there were none."""
        return self.restore(self._without)

    def _without(self, text: str) -> str:
        return without_hooks(text, str(self.shown))
