"""The multiplexer: many clients, one server process. Messages in, messages out.

Every request of a client gets an id of ours, which is its progress token as well, so equal ids of
two clients never meet. A request or log message of the server goes to the client whose call caused
it; a server on stdio does not say which call that was, so with calls of several clients in progress
a request is refused and a log message is dropped. A server that has sent either gets calls one at a
time from then on.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ramherd.gateway.protocol.jsonrpc import (
    CANCELLED,
    FREE_METHODS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEVELS,
    LISTEN,
    LOG_LEVEL,
    META,
    METHOD_NOT_FOUND,
    PROGRESS_TOKEN,
    RELATED_TASK,
    SERVER_FAILED,
    SUBSCRIPTION_ID,
    TASK_METHODS,
    Message,
    RequestId,
    is_notification,
    is_request,
    make_error,
    make_notification,
    make_request,
    make_result,
    meta_of,
    params_of,
    with_meta,
    with_params,
)

SUBSCRIBE, UNSUBSCRIBE, SET_LEVEL = (
    "resources/subscribe", "resources/unsubscribe", "logging/setLevel",
)  # fmt: skip
LIST_CHANGED = "/list_changed"
# A server may not make the gateway remember more than this.
MOST_TASKS = 10_000


class ToServer(NamedTuple):
    message: Message


class ToCall(NamedTuple):
    """For the response to one request; the last message of it ends the response."""

    call: int
    message: Message
    is_last: bool = False


class ToSession(NamedTuple):
    """Belongs to no request: for the session's own stream."""

    session: str
    message: Message


Output = ToServer | ToCall | ToSession


@dataclass(slots=True)
class ClientCall:
    """A request of a client. `session` is "" for requests of the gateway itself; `owner` is the
    client to whom tasks belong.
    """

    session: str
    owner: str
    request: Message
    is_sent: bool = False
    is_cancelled: bool = False

    @property
    def id(self) -> RequestId:
        found: RequestId = self.request["id"]
        return found

    @property
    def method(self) -> str:
        return str(self.request["method"])


class Asked(NamedTuple):
    """A request of the server that a client has not answered yet."""

    id: RequestId
    session: str


@dataclass(slots=True)
class ClientState:
    level: str | None = None
    uris: set[str] = field(default_factory=set)


class Router:
    """`is_serial`: calls one at a time. `asks` is learned: the server has sent a request or a log
    message, so calls are one at a time as well.
    """

    def __init__(self, *, is_modern: bool = False, is_serial: bool = False, asks: bool = False):
        self.is_modern, self.is_serial, self.asks = is_modern, is_serial, asks
        self.calls: dict[int, ClientCall] = {}
        self.sessions: dict[str, ClientState] = {}
        self.asked: dict[int, Asked] = {}
        self._waiting: deque[int] = deque()
        # The calls that have been sent and that others wait for.
        self._running: set[int] = set()
        self._last_id = 0
        self._tasks: dict[str, str] = {}
        self._elicitations: dict[str, str] = {}
        self._level: str | None = None

    # Clients

    def add_session(self, session: str) -> None:
        self.sessions.setdefault(session, ClientState())

    def remove_session(self, session: str) -> list[Output]:
        """Cancels its calls, answers what the server asked it, and ends its subscriptions."""
        outputs: list[Output] = []
        for number in [n for n, call in self.calls.items() if call.session == session]:
            outputs += self.cancel(number, "the session has ended")
        for number, asked in list(self.asked.items()):
            if asked.session == session:
                del self.asked[number]
                error = make_error(asked.id, INTERNAL_ERROR, "the client has gone")
                outputs.append(ToServer(error))
        state = self.sessions.pop(session, ClientState())
        for uri in sorted(state.uris):
            if not self._is_subscribed(uri):
                outputs.append(ToServer(self._own_request(UNSUBSCRIBE, {"uri": uri})))
        return outputs

    def request(self, session: str, owner: str, message: Message) -> tuple[int, list[Output]]:
        """A request of a client: its number, by which its response is delivered."""
        number = self._next_id()
        call = self.calls[number] = ClientCall(session, owner, message)
        if (answer := self._answer(call)) is not None:
            return number, self._end(number, answer)
        if self._has_to_wait(call):
            self._waiting.append(number)
            return number, []
        return number, self._send(number)

    def notify(self, session: str, message: Message) -> list[Output]:
        """A notification of a client."""
        method, params = message["method"], params_of(message)
        if method == "notifications/cancelled":
            number = self._find_call(session, params.get("requestId"))
            return [] if number is None else self.cancel(number, params.get("reason"))
        if method == "notifications/progress":
            # The tokens of the server are unique in it; a client may use those that it was sent.
            return [ToServer(message)] if self._asked_of(session) else []
        if method == "notifications/roots/list_changed" and len(self.sessions) > 1:
            return []
        return [] if method == "notifications/initialized" else [ToServer(message)]

    def answer(self, session: str, message: Message) -> list[Output]:
        """The answer of a client to a request of the server."""
        number = message.get("id")
        asked = self.asked.get(number) if isinstance(number, int) else None
        if asked is None or asked.session != session:
            return []
        assert isinstance(number, int)
        del self.asked[number]
        return [ToServer({**message, "id": asked.id})]

    def cancel(self, number: int, reason: Any = None) -> list[Output]:
        """The client no longer waits. A call that the server has keeps its place among calls one at
        a time, until the server answers or `release` is called.
        """
        call = self.calls.get(number)
        if call is None or call.is_cancelled:
            return []
        call.is_cancelled = True
        error = make_error(call.id, CANCELLED, "the request was cancelled")
        if not call.is_sent:
            self._waiting.remove(number)
            del self.calls[number]
            return [ToCall(number, error, True)]
        params = {"requestId": number, **({"reason": reason} if reason is not None else {})}
        cancelled = make_notification("notifications/cancelled", params)
        outputs: list[Output] = [ToServer(cancelled), ToCall(number, error, True)]
        return outputs if number in self._running else outputs + self.release(number)

    def release(self, number: int) -> list[Output]:
        """A cancelled call that the server did not answer: the next call may start."""
        call = self.calls.get(number)
        if call is None or not call.is_cancelled:
            return []
        del self.calls[number]
        return self._start_next(number)

    # The gateway itself

    def own_request(self, method: str, params: dict[str, Any] | None = None) -> tuple[int, Output]:
        """A request of the gateway: its answer is delivered by the number."""
        message = self._own_request(method, params)
        return self._last_id, ToServer(message)

    def restart(self) -> list[Output]:
        """For a new process of the server: subscriptions and the log level as clients set them, and
        the first call that waits.
        """
        outputs: list[Output] = []
        if self._level is not None:
            outputs.append(ToServer(self._own_request(SET_LEVEL, {"level": self._level})))
        for uri in sorted({uri for state in self.sessions.values() for uri in state.uris}):
            outputs.append(ToServer(self._own_request(SUBSCRIBE, {"uri": uri})))
        return outputs + self._start_next(0)

    def fail(self, message: str, *, with_waiting: bool = False) -> list[Output]:
        """The server has ended: every call that it has gets an error, and is not sent again. Calls
        that it never got wait for its next process.
        """
        outputs: list[Output] = []
        for number, call in list(self.calls.items()):
            if not call.is_sent and not with_waiting:
                continue
            del self.calls[number]
            if not call.is_cancelled:
                error = make_error(call.id, SERVER_FAILED, message)
                outputs.append(ToCall(number, error, True))
        if with_waiting:
            self._waiting.clear()
        for state in (self.asked, self._running, self._tasks):
            state.clear()
        return outputs

    @property
    def is_busy(self) -> bool:
        """Whether a client would miss the process."""
        has_uris = any(state.uris for state in self.sessions.values())
        return bool(self.calls or self.asked or self._tasks or has_uris)

    # The server

    def receive(self, message: Message) -> list[Output]:
        if is_request(message):
            return self._receive_request(message)
        if is_notification(message):
            return self._receive_notification(message)
        number = message.get("id")
        call = self.calls.pop(number, None) if isinstance(number, int) else None
        if call is None:
            return []
        assert isinstance(number, int)
        outputs: list[Output] = []
        if not call.is_cancelled:
            self._learn(call, message)
            outputs.append(ToCall(number, self._restore(call, number, message), True))
        return outputs + self._start_next(number)

    def _receive_request(self, message: Message) -> list[Output]:
        if message["method"] == "ping":
            return [ToServer(make_result(message["id"], {}))]
        if self.is_modern:
            error = make_error(message["id"], METHOD_NOT_FOUND, "clients answer no requests")
            return [ToServer(error)]
        self.asks = True
        number, session = self._find_cause(message)
        if session is None:
            why = "calls of several clients are in progress: it is not known which one asks"
            return [ToServer(make_error(message["id"], INTERNAL_ERROR, why))]
        asked = self._next_id()
        self.asked[asked] = Asked(message["id"], session)
        if isinstance(elicitation := params_of(message).get("elicitationId"), str):
            self._elicitations[elicitation] = session
        passed = {**message, "id": asked}
        return [ToSession(session, passed) if number is None else ToCall(number, passed)]

    def _receive_notification(self, message: Message) -> list[Output]:
        method = message["method"]
        if SUBSCRIPTION_ID in meta_of(message):
            return self._pass_to_listener(message)
        if method.endswith(LIST_CHANGED):
            return [ToSession(session, message) for session in self.sessions]
        passes = {
            "notifications/progress": self._pass_progress,
            "notifications/cancelled": self._withdraw,
            "notifications/resources/updated": self._pass_update,
            "notifications/elicitation/complete": self._pass_completion,
            "notifications/message": self._pass_log,
        }
        return passes.get(method, self._pass_unknown)(message)

    def _pass_update(self, message: Message) -> list[Output]:
        uri = params_of(message).get("uri")
        return [ToSession(s, message) for s, state in self.sessions.items() if uri in state.uris]

    def _pass_completion(self, message: Message) -> list[Output]:
        session = self._elicitations.pop(str(params_of(message).get("elicitationId")), None)
        return [] if session is None else self._to_session(session, message)

    def _pass_unknown(self, message: Message) -> list[Output]:
        return self._deliver(*self._find_cause(message), message)

    def _pass_progress(self, message: Message) -> list[Output]:
        number = params_of(message).get(PROGRESS_TOKEN)
        call = self.calls.get(number) if isinstance(number, int) else None
        if call is None or call.is_cancelled or PROGRESS_TOKEN not in meta_of(call.request):
            return []
        assert isinstance(number, int)
        token = meta_of(call.request)[PROGRESS_TOKEN]
        return [ToCall(number, with_params(message, **{PROGRESS_TOKEN: token}))]

    def _pass_to_listener(self, message: Message) -> list[Output]:
        number = meta_of(message)[SUBSCRIPTION_ID]
        call = self.calls.get(number) if isinstance(number, int) else None
        if call is None or call.is_cancelled:
            return []
        assert isinstance(number, int)
        return [ToCall(number, with_meta(message, **{SUBSCRIPTION_ID: call.id}))]

    def _pass_log(self, message: Message) -> list[Output]:
        """In the newer era only requests that name a level get messages."""
        self.asks = True
        if self.is_modern:
            takers = [n for n, call in self.calls.items() if LOG_LEVEL in meta_of(call.request)]
            return [ToCall(takers[0], message)] if len(takers) == 1 else []
        number, session = self._find_cause(message)
        if session is None or not self._wants(session, params_of(message).get("level")):
            return []
        return self._deliver(number, session, message)

    def _wants(self, session: str, level: Any) -> bool:
        if self._level is None or level not in LEVELS:
            return True
        least = self.sessions[session].level or "info"
        return LEVELS.index(level) >= LEVELS.index(least)

    def _withdraw(self, message: Message) -> list[Output]:
        """The server no longer waits for the answer of a client."""
        id_ = params_of(message).get("requestId")
        for number, asked in self.asked.items():
            if asked.id == id_:
                del self.asked[number]
                return self._to_session(asked.session, with_params(message, requestId=number))
        return []

    def _find_cause(self, message: Message) -> tuple[int | None, str | None]:
        """The call and the session that a message of the server belongs to, if that is certain."""
        task = meta_of(message).get(RELATED_TASK)
        if isinstance(task, dict) and (owner := self._tasks.get(str(task.get("taskId")))):
            return self._find_owner(owner)
        calls = {n: c for n, c in self.calls.items() if c.is_sent and c.session}
        calls = {n: c for n, c in calls.items() if c.method not in FREE_METHODS} or calls
        sessions = {call.session for call in calls.values()}
        if len(sessions) == 1:
            number = max(calls)
            # A cancelled call has no client that could answer.
            return (number, calls[number].session) if self._is_open(number) else (None, None)
        if not sessions and len(self.sessions) == 1:
            return None, next(iter(self.sessions))
        return None, None

    def _find_owner(self, owner: str) -> tuple[int | None, str | None]:
        for number, call in self.calls.items():
            if call.owner == owner and call.is_sent and not call.is_cancelled:
                return number, call.session
        return None, None

    def _is_open(self, number: int) -> bool:
        return not self.calls[number].is_cancelled

    def _deliver(self, number: int | None, session: str | None, message: Message) -> list[Output]:
        if session is None:
            return []
        return [ToSession(session, message) if number is None else ToCall(number, message)]

    def _to_session(self, session: str, message: Message) -> list[Output]:
        """Through the response of a call in progress, if there is one: a client may have no stream
        of its own.
        """
        for number, call in self.calls.items():
            if call.session == session and call.is_sent and not call.is_cancelled:
                return [ToCall(number, message)]
        return [ToSession(session, message)] if session in self.sessions else []

    # Requests

    def _answer(self, call: ClientCall) -> Message | None:
        """The answer to a request that the server does not need to see."""
        params = params_of(call.request)
        if call.method == "ping" and not self.is_modern:
            return make_result(call.id, {})
        if call.method in TASK_METHODS and self._is_foreign_task(call, params.get("taskId")):
            return make_error(call.id, INVALID_PARAMS, "no such task")
        if self.is_modern:
            return None
        uri, state = str(params.get("uri")), self.sessions.get(call.session)
        if call.method == SUBSCRIBE and self._is_subscribed(uri) and state is not None:
            state.uris.add(uri)
            return make_result(call.id, {})
        if call.method == UNSUBSCRIBE and state is not None:
            state.uris.discard(uri)
            return make_result(call.id, {}) if self._is_subscribed(uri) else None
        return None

    def _is_foreign_task(self, call: ClientCall, task: Any) -> bool:
        return self._tasks.get(str(task), call.owner) != call.owner

    def _is_subscribed(self, uri: str) -> bool:
        return any(uri in state.uris for state in self.sessions.values())

    def _has_to_wait(self, call: ClientCall) -> bool:
        is_one_at_a_time = self.is_serial or (self.asks and not self.is_modern)
        if not is_one_at_a_time or call.method in FREE_METHODS:
            return False
        return bool(self._running or self._waiting)

    def _send(self, number: int) -> list[Output]:
        call = self.calls[number]
        call.is_sent = True
        if call.method not in FREE_METHODS:
            self._running.add(number)
        message = {**call.request, "id": number}
        if call.method == SET_LEVEL:
            message = self._set_level(call, message)
        if PROGRESS_TOKEN in meta_of(message):
            message = with_meta(message, **{PROGRESS_TOKEN: number})
        return [ToServer(message)]

    def _set_level(self, call: ClientCall, message: Message) -> Message:
        """The server gets the most talkative level of all clients; messages are filtered here."""
        level = params_of(message).get("level")
        if level not in LEVELS or call.session not in self.sessions:
            return message
        self.sessions[call.session].level = level
        levels = [state.level for state in self.sessions.values() if state.level is not None]
        self._level = min(levels, key=LEVELS.index)
        return with_params(message, level=self._level)

    def _start_next(self, ended: int) -> list[Output]:
        self._running.discard(ended)
        if self._running or not self._waiting:
            return []
        return self._send(self._waiting.popleft())

    def _end(self, number: int, message: Message) -> list[Output]:
        del self.calls[number]
        return [ToCall(number, message, True)]

    def _learn(self, call: ClientCall, message: Message) -> None:
        result = message.get("result")
        if not isinstance(result, dict):
            return
        task = result.get("task") if isinstance(result.get("task"), dict) else result
        task_id = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(task_id, str) and call.owner and len(self._tasks) < MOST_TASKS:
            self._tasks.setdefault(task_id, call.owner)
        if call.method == SUBSCRIBE and call.session in self.sessions:
            self.sessions[call.session].uris.add(str(params_of(call.request).get("uri")))

    def _restore(self, call: ClientCall, number: int, message: Message) -> Message:
        restored = {**message, "id": call.id}
        result = message.get("result")
        if not isinstance(result, dict):
            return restored
        if call.method == LISTEN and isinstance(result.get(META), dict):
            meta = result[META]
            if meta.get(SUBSCRIPTION_ID) == number:
                restored["result"] = {**result, META: {**meta, SUBSCRIPTION_ID: call.id}}
        if call.method == "tasks/list" and isinstance(result.get("tasks"), list):
            own = [
                task for task in result["tasks"]
                if isinstance(task, dict) and self._tasks.get(str(task.get("taskId"))) == call.owner
            ]  # fmt: skip
            restored["result"] = {**result, "tasks": own}
        return restored

    def _find_call(self, session: str, id_: Any) -> int | None:
        for number, call in self.calls.items():
            # True == 1: the type counts as well.
            if call.session == session and call.id == id_ and type(call.id) is type(id_):
                return number
        return None

    def _asked_of(self, session: str) -> bool:
        return any(asked.session == session for asked in self.asked.values())

    def _own_request(self, method: str, params: dict[str, Any] | None) -> Message:
        number = self._next_id()
        message = make_request(number, method, params)
        self.calls[number] = ClientCall("", "", message, is_sent=True)
        return message

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id
