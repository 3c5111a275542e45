"""The description of the API, as OpenAPI 3.1; `make generate` writes docs/openapi.json."""

from ramherd import __version__
from ramherd.core.model import JobState, RunEnd, Why
from ramherd.core.values import AMOUNT, BOOLEAN, INTEGER, STRING, VARIABLES, Schema
from ramherd.jobs.schema import describe_defaults, describe_new_job, describe_shown

TEXT, WHOLE, FLAG = STRING, INTEGER, BOOLEAN
NUMBER: Schema = {"type": "number"}


def thing(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def many(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def nullable(of: Schema) -> Schema:
    return {"anyOf": [of, {"type": "null"}]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


REASON = thing({"why": {"type": "string", "enum": list(Why)}})
RUN = thing(
    {
        "run": TEXT, "attempt": WHOLE, "started_s": NUMBER, "ended_s": nullable(NUMBER),
        "end": nullable({"type": "string", "enum": list(RunEnd)}), "exit_code": nullable(WHOLE),
        "signal": nullable(WHOLE), "reason": nullable(ref("Reason")),
        "peak_bytes": nullable(WHOLE),
    }
)  # fmt: skip
JOB = thing(
    {
        "id": TEXT, "herd": TEXT, "name": TEXT,
        "state": {"type": "string", "enum": list(JobState)}, "reason": ref("Reason"),
        "attempts": WHOLE, "failures": WHOLE, "priority": WHOLE, "updated_s": NUMBER,
        "wish": nullable({"type": "string", "enum": ["cancel", "recycle"]}), "label": TEXT,
        "owner_lost": FLAG,
        "session": nullable(TEXT), "turns": nullable(WHOLE), "tokens_in": nullable(WHOLE),
        "tokens_out": nullable(WHOLE), "cost_usd": nullable(NUMBER), "result": nullable(TEXT),
        "model": nullable(TEXT), "worktree": nullable(TEXT),
    },
    {**describe_shown(), "runs": many(ref("Run"))},
)  # fmt: skip
HERD = thing(
    {
        "herd": TEXT, "created_s": NUMBER, "ended_s": nullable(NUMBER), "service": FLAG,
        "owner_lost": FLAG,
        "counts": {"type": "object", "additionalProperties": WHOLE},
    },
    {"summary": nullable({"type": "object"})},
)  # fmt: skip
EVENT = thing(
    {
        "v": WHOLE, "seq": WHOLE, "at_s": NUMBER, "kind": TEXT, "herd": TEXT, "job": TEXT,
        "run": TEXT, "node": TEXT, "reason": ref("Reason"),
    }
)  # fmt: skip
NEW_HERD: Schema = {
    **thing(
        {"jobs": {**many(ref("NewJob")), "minItems": 1}},
        {
            "env": {
                **VARIABLES.written,
                "description": "what runs inherit, instead of the service's own environment",
            },
            "cwd": {**TEXT, "description": "where relative paths start; where jobs run by default"},
            "defaults": {
                **ref("JobDefaults"), "description": "values for jobs that do not give one",
            },
            "profiles": {
                "type": "object", "additionalProperties": ref("JobDefaults"),
                "description": "instead of defaults, for jobs that name one of these",
            },
            "source": {**TEXT, "description": "the name of the file, for errors"},
            "max_cost_usd": {
                **AMOUNT.written, "description": "what the herd's agents may cost together",
            },
        },
    ),
    "additionalProperties": False,
}  # fmt: skip
RETRY: Schema = {
    **thing(
        {},
        {
            "env": {
                **VARIABLES.written,
                "description": "what runs inherit if the herd has ended, when its own is gone",
            },
        },
    ),
    "additionalProperties": False,
}
SNAPSHOT = thing(
    {
        "at_s": NUMBER, "level": TEXT, "budget_bytes": WHOLE, "leased_bytes": WHOLE,
        "granted_bytes": WHOLE, "used_bytes": WHOLE, "available_bytes": WHOLE, "paused": FLAG,
        "jobs": {"type": "object", "additionalProperties": WHOLE},
        "runs": many({"type": "object"}), "counters": {"type": "object"},
    }
)  # fmt: skip
SCHEMAS = {
    "Error": thing({"error": TEXT}, {"hint": TEXT}),
    "Reason": REASON, "Run": RUN, "Job": JOB, "Herd": HERD, "Event": EVENT,
    "NewJob": describe_new_job(), "JobDefaults": describe_defaults(), "NewHerd": NEW_HERD,
    "Retry": RETRY, "Snapshot": SNAPSHOT,
}  # fmt: skip

SWITCH: Schema = {"type": "string", "enum": ["false", "true"], "default": "false"}
LIMIT = {"limit": {"type": "integer", "minimum": 0, "maximum": 10_000, "default": 1000}}
ERRORS = {
    "400": "what was asked makes no sense", "401": "no or a wrong token (127.0.0.1 only)",
    "403": "asked by a web page", "404": "there is none", "409": "not in its state",
    "413": "too large", "415": "no JSON", "503": "the store cannot be used now",
}  # fmt: skip


def answers(status: str, what: str, schema: Schema, kind: str = "application/json") -> Schema:
    ok = {status: {"description": what, "content": {kind: {"schema": schema}}}}
    error = {"application/json": {"schema": ref("Error")}}
    return {
        **ok,
        **{code: {"description": text, "content": error} for code, text in ERRORS.items()},
    }


def path_part(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}}


def query(**schemas: Schema) -> list[Schema]:
    return [{"name": name, "in": "query", "schema": schema} for name, schema in schemas.items()]


def asks(
    summary: str, responses: Schema, *parameters: Schema, body: str = "", is_required: bool = True
) -> Schema:
    content = {"application/json": {"schema": ref(body)}}
    return {
        "summary": summary,
        "operationId": summary.replace(" ", "_"),
        "parameters": list(parameters),
        "responses": responses,
        **({"requestBody": {"required": is_required, "content": content}} if body else {}),
    }


HERD_PART, JOB_PART = path_part("herd"), path_part("job")
WISHED = thing({"job": TEXT, "wish": TEXT})
STATE: Schema = {"type": "string", "enum": list(JobState)}
ONE_EVENT_STREAM = {
    "text/event-stream": {"schema": TEXT},
    "application/json": {
        "schema": thing({"events": many(ref("Event")), "first": WHOLE, "last": WHOLE})
    },
}


def paths() -> Schema:
    events = answers("200", "a page, or a stream that goes on", TEXT)
    events["200"]["content"] = ONE_EVENT_STREAM
    paused = answers("200", "as it is now", thing({"paused": FLAG}))
    logs = query(
        stream={"type": "string", "enum": ["out", "err"], "default": "out"},
        follow=SWITCH,
    )
    start = {"name": "from", "in": "query", "schema": {"type": "integer", "minimum": 0}}
    after = {"type": "integer", "minimum": 0, "default": 0}
    return {
        "/v1/openapi.json": {
            "get": asks("describe", answers("200", "this", {"type": "object"})),
        },
        "/v1/herds": {
            "get": asks(
                "list herds", answers("200", "newest first", thing({"herds": many(ref("Herd"))})),
                *query(before=TEXT, **LIMIT),
            ),
            "post": asks(
                "submit", answers("201", "on disk", thing({"herd": TEXT, "jobs": WHOLE})),
                body="NewHerd",
            ),
        },
        "/v1/herds/{herd}": {
            "get": asks("show herd", answers("200", "it", ref("Herd")), HERD_PART),
        },
        "/v1/herds/{herd}/cancel": {
            "post": asks(
                "cancel herd",
                answers("202", "noted", thing({"herd": TEXT, "jobs": WHOLE})), HERD_PART,
            ),
        },
        "/v1/jobs": {
            "get": asks(
                "list jobs", answers("200", "oldest first", thing({"jobs": many(ref("Job"))})),
                *query(herd=TEXT, state=STATE, after=TEXT, runs=SWITCH, **LIMIT),
            ),
        },
        "/v1/jobs/{job}": {
            "get": asks("show job", answers("200", "with its runs", ref("Job")), JOB_PART),
        },
        "/v1/jobs/{job}/logs": {
            "get": asks(
                "logs", answers("200", "what it printed", TEXT, "application/octet-stream"),
                JOB_PART, *logs, start,
            ),
        },
        "/v1/jobs/{job}/cancel": {
            "post": asks("cancel", answers("202", "noted", WISHED), JOB_PART),
        },
        "/v1/jobs/{job}/recycle": {
            "post": asks("recycle", answers("202", "noted", WISHED), JOB_PART),
        },
        "/v1/jobs/{job}/retry": {
            "post": asks(
                "retry",
                answers("202", "queued again", thing({"job": TEXT, "jobs": many(TEXT)})),
                JOB_PART, body="Retry", is_required=False,
            ),
        },
        "/v1/pause": {"post": asks("pause", paused)},
        "/v1/resume": {"post": asks("resume", paused)},
        "/v1/events": {
            "get": asks(
                "events", events,
                *query(after=after, herd=TEXT, job=TEXT, **LIMIT),
            ),
        },
        "/v1/snapshot": {
            "get": asks("snapshot", answers("200", "memory, ledger, level", ref("Snapshot"))),
        },
        "/metrics": {
            "get": asks("metrics", answers("200", "for Prometheus", TEXT, "text/plain")),
        },
    }  # fmt: skip


def describe() -> Schema:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ramherd",
            "version": __version__,
            "description": "On a unix socket of the user, and on 127.0.0.1 with a token.",
        },
        "paths": paths(),
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
