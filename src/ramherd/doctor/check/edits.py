"""How a line that a user wrote is named, edited, and commented out."""

import re
from shlex import quote

from ramherd.doctor.facts import COPY_SUFFIX, Line
from ramherd.doctor.findings import CommentOut

EDITOR = "${EDITOR:-vi}"
OWN_CRONTAB = "crontab -l"
_SPOOL = re.compile(r"/var/spool/cron/(?:crontabs/)?([^/]+)$")


def place(line: Line) -> str:
    return f"{line.path}:{line.number}" if line.number else line.path


def edit_command(line: Line) -> str:
    """Tables of cron are not edited as files: cron reads them again only after `crontab`."""
    if line.path == OWN_CRONTAB:
        return "crontab -e"
    if match := _SPOOL.search(line.path):
        return f"sudo crontab -u {quote(match[1])} -e"
    sudo = "" if line.is_writable else "sudo "
    at = f" +{line.number}" if line.number else ""
    return f"{sudo}{EDITOR}{at} {quote(line.path)}"


def comment_out(line: Line, prefix: str) -> CommentOut:
    return CommentOut(line.path, line.number, line.text, prefix, f"{line.path}{COPY_SUFFIX}")
