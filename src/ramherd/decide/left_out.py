"""Which changed files of a worktree are not committed: files that may contain secrets, and files
that are too large to stay in a repository forever.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ramherd.core.record import record
from ramherd.core.units import MIB, format_size

MOST_BYTES = 10 * MIB
# Names in lower case. A change to a file that is already in the repository is committed: the user
# added the file on purpose.
SECRETS = (
    ".env*", "*.env",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx",
    "credentials", "credentials.json", "credentials.yml", "credentials.yaml", "credentials.toml",
    ".credentials*", "client_secret*.json", "service-account*.json", "service_account*.json",
    "secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml",
    ".netrc", "_netrc", ".git-credentials", ".pgpass", ".htpasswd", ".pypirc", ".vault-token",
)  # fmt: skip
# Files that are meant to be published.
PUBLIC = ("*.example", "*.sample", "*.template", "*.tmpl", "*.dist", "*.defaults", "*.pub")
# The number of files that are listed; the rest are counted.
MOST_LISTED = 100


@record
class ChangedFile:
    """A file that git would commit. `submodule` has git's letters for a submodule: C its commit
    changed, M files in it changed, U it has untracked files.
    """

    path: str
    bytes: int = 0
    is_tracked: bool = False
    is_ignored: bool = False
    is_readable: bool = True
    submodule: str = ""


def explain_left_out(file: ChangedFile) -> str:
    """Why the file is not committed; "" if it is."""
    if file.is_ignored:
        return "ignored"
    if file.submodule:
        return "changes inside of a submodule" if set(file.submodule) & set("MU") else ""
    if file.path.endswith("/"):
        return "a git repository of its own"
    if not file.is_readable:
        return "not readable"
    if file.bytes > MOST_BYTES:
        return f"larger than {format_size(MOST_BYTES)}"
    return "may hold secrets" if is_secret(file) else ""


def is_secret(file: ChangedFile) -> bool:
    name = file.path.rpartition("/")[2].lower()
    if file.is_tracked or any(fnmatchcase(name, pattern) for pattern in PUBLIC):
        return False
    return any(fnmatchcase(name, pattern) for pattern in SECRETS)


def is_committed(file: ChangedFile) -> bool:
    """The new commit of a submodule can be recorded, whatever else changed in the submodule."""
    if file.submodule and not file.is_ignored:
        return "C" in file.submodule
    return not explain_left_out(file)


def choose_listed(files: Sequence[ChangedFile]) -> tuple[list[dict[str, str]], int]:
    """The files that are not committed, each with the reason, ignored files last; and the number of
    files beyond the list.
    """
    found = [(file, why) for file in files if (why := explain_left_out(file))]
    found.sort(key=lambda one: one[0].is_ignored)
    listed = [{"path": file.path, "why": why} for file, why in found[:MOST_LISTED]]
    return listed, len(found) - len(listed)
