"""The errors that users see: one line, and a hint that works."""

# The hint for every full disk.
MAKE_ROOM = "make room: ramherd prune --keep 0 removes all output of ended runs"


class RamherdError(Exception):
    """Base of all errors that are shown without a traceback."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(RamherdError):
    """The request itself is wrong: nothing was started."""

    exit_code = 2


class NoRoom(RamherdError):
    """There is not enough memory for even one run now."""

    exit_code = 3


class NoPen(RamherdError):
    """This machine cannot hold runs in the requested way."""

    exit_code = 3


class LimitTooLow(RamherdError):
    """A limit of this process (ulimit) is too low for the request."""

    exit_code = 3


class NoService(RamherdError):
    """No service is running, or it does not answer."""

    exit_code = 3


class ServiceBusy(NoService):
    """The service has reached its maximum number of connections or streams."""


class WaitTimeout(RamherdError, TimeoutError):
    """The event that a script waited for did not happen within its timeout."""


class StoreError(RamherdError):
    """The store or a state directory cannot be used."""

    exit_code = 3


class StoreDamaged(StoreError):
    """The file is no longer a database, or parts of it are unreadable."""


class StoreUnavailable(StoreError):
    """The store is locked, or its disk is full: the same request may succeed later."""


class LedgerLocked(StoreUnavailable):
    """Another process holds the lock of the ledger."""
