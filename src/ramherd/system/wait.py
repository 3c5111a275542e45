"""Standing still until somebody has something to say."""

import select
from collections.abc import Iterable


def wait_for(link: int, fds: Iterable[int], timeout_s: float, *, sending: bool) -> set[int]:
    """Those that are ready; the keeper's link also when it takes more, if there is more."""
    poll = select.poll()
    poll.register(link, select.POLLIN | (select.POLLOUT * sending))
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _events in poll.poll(timeout_s * 1000)}
