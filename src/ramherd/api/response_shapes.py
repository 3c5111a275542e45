"""The shapes of requests and responses as JSON Schema, by the names that the routing table uses."""

from ramherd.core.model import JobState, RunEnd, Why
from ramherd.core.values import AMOUNT, BOOLEAN, INTEGER, SIZE, STRING, VARIABLES, Schema
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
        "peak_bytes": nullable(WHOLE), "held_s": nullable(NUMBER),
    }
)  # fmt: skip
DENIED = thing({"tool": TEXT, "what": TEXT, "allow": TEXT})
LEFT_OUT = thing({"path": TEXT, "why": TEXT})
JOB = thing(
    {
        "id": TEXT, "number": nullable(WHOLE), "herd": TEXT, "name": TEXT,
        "state": {"type": "string", "enum": list(JobState)}, "reason": ref("Reason"),
        "attempts": WHOLE, "failures": WHOLE, "priority": WHOLE, "updated_s": NUMBER,
        "wish": nullable({"type": "string", "enum": ["cancel", "recycle"]}), "label": TEXT,
        "owner_lost": FLAG, "paused_s": nullable(NUMBER), "not_before_s": nullable(NUMBER),
        "started_s": nullable(NUMBER), "ended_s": nullable(NUMBER), "exit_code": nullable(WHOLE),
        "signal": nullable(WHOLE), "peak_bytes": nullable(WHOLE), "used_bytes": nullable(WHOLE),
        "session": nullable(TEXT), "turns": nullable(WHOLE), "tokens_in": nullable(WHOLE),
        "tokens_out": nullable(WHOLE), "cost_usd": nullable(NUMBER),
        "cost_is_estimate": nullable(FLAG), "result": nullable(TEXT),
        "model": nullable(TEXT), "worktree": nullable(TEXT), "branch": nullable(TEXT),
        "files_changed": nullable(WHOLE), "lines_added": nullable(WHOLE),
        "lines_removed": nullable(WHOLE), "denied": nullable(many(ref("Denied"))),
        "error": nullable(TEXT), "resume": nullable(TEXT),
        "left_out": nullable(many(ref("LeftOut"))), "worktree_note": nullable(TEXT),
        "fallback": nullable(ref("Reason")), "merged_into": nullable(TEXT),
    },
    {**describe_shown(), "runs": many(ref("Run"))},
)  # fmt: skip
HERD = thing(
    {
        "herd": TEXT, "created_s": NUMBER, "ended_s": nullable(NUMBER), "service": FLAG,
        "owner_lost": FLAG, "counts": {"type": "object", "additionalProperties": WHOLE},
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
            "on_done": {
                **STRING, "description": "a line for the shell, run when the herd has ended",
            },
            "start_at_s": {
                "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 7_258_118_400,
                "description": "no job starts before that time, in epoch seconds",
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
            "allow": {
                **many(TEXT),
                "description": "rules for tools that the agent may use from now on",
            },
        },
    ),
    "additionalProperties": False,
}
EDIT: Schema = {
    **thing(
        {},
        {
            "priority": {**WHOLE, "description": "jobs with a higher number start first"},
            "memory": {**SIZE.written, "description": "memory reserved for a run from its start"},
        },
    ),
    "additionalProperties": False,
    "minProperties": 1,
}  # fmt: skip
RESUME: Schema = {
    **thing(
        {},
        {
            "env": {**VARIABLES.written, "description": "what the runs of the herd inherit"},
            "max_cost_usd": {
                **AMOUNT.written, "description": "what the herd's agents may cost together",
            },
        },
    ),
    "additionalProperties": False,
}  # fmt: skip
SNAPSHOT = thing(
    {
        "at_s": NUMBER, "level": TEXT, "budget_bytes": WHOLE, "leased_bytes": WHOLE,
        "granted_bytes": WHOLE, "used_bytes": WHOLE, "available_bytes": WHOLE, "paused": FLAG,
        "paused_s": nullable(NUMBER),
        "jobs": {"type": "object", "additionalProperties": WHOLE},
        "runs": many({"type": "object"}), "counters": {"type": "object"},
    }
)  # fmt: skip
SAMPLE = thing(
    {
        "at_s": WHOLE, "total_bytes": WHOLE, "available_bytes": WHOLE, "budget_bytes": WHOLE,
        "used_bytes": WHOLE, "granted_bytes": WHOLE, "level": TEXT,
        "runs": {
            **many(many(WHOLE)),
            "description": "job number, attempt, used bytes, granted bytes, and 1 if it was held",
        },
    }
)  # fmt: skip
SAMPLES = thing(
    {
        "step_s": {**WHOLE, "description": "of each step, the fullest moment"},
        "samples": many(ref("Sample")),
        "jobs": {
            "type": "object", "description": "by number; without jobs that were pruned",
            "additionalProperties": thing(
                {"job": TEXT, "name": TEXT, "herd": TEXT, "agent": nullable(TEXT)}
            ),
        },
    }
)  # fmt: skip
SCHEMAS: dict[str, Schema] = {
    "Error": thing({"error": TEXT}, {"hint": TEXT}),
    "Object": {"type": "object"}, "Text": TEXT, "Version": thing({"api": WHOLE, "version": TEXT}),
    "Herds": thing({"herds": many(ref("Herd"))}), "Jobs": thing({"jobs": many(ref("Job"))}),
    "Events": thing({"events": many(ref("Event")), "first": WHOLE, "last": WHOLE}),
    "Submitted": thing({"herd": TEXT, "jobs": WHOLE}),
    "Wish": thing({"job": TEXT, "wish": TEXT}), "Paused": thing({"paused": FLAG}),
    "PausedJob": thing({"job": TEXT, "paused": FLAG}),
    "EditedJob": thing({"job": TEXT}, {"priority": WHOLE, "memory": WHOLE}), "Edit": EDIT,
    "Retried": thing({"job": TEXT, "jobs": many(TEXT)}),
    "Reason": REASON, "Denied": DENIED, "LeftOut": LEFT_OUT, "Run": RUN, "Job": JOB,
    "Herd": HERD, "Event": EVENT,
    "NewJob": describe_new_job(), "JobDefaults": describe_defaults(), "NewHerd": NEW_HERD,
    "Retry": RETRY, "Resume": RESUME, "Snapshot": SNAPSHOT,
    "Sample": SAMPLE, "Samples": SAMPLES,
}  # fmt: skip
