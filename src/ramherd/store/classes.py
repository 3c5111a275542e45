"""The estimates learned for each class of jobs, in the store's `classes` table."""

import json
import time
from collections.abc import Iterator
from dataclasses import astuple
from typing import NamedTuple

from ramherd.decide.governor.classes import ClassRecord, RunSummary, learn, prior_of
from ramherd.store.protocol import Store
from ramherd.store.sql import classes as sql


class ClassKey(NamedTuple):
    agent: str
    project: str
    label: str


class Known(NamedTuple):
    key: ClassKey
    record: ClassRecord
    updated_s: float


def read_class(store: Store, key: ClassKey) -> ClassRecord:
    """The record of the class; for an unknown class, only the prior."""
    rows = store.read(sql.GET_CLASS, key)
    return class_record(key, *rows[0]) if rows else ClassRecord(prior=prior_of(key.agent))


def learn_run(store: Store, key: ClassKey, summary: RunSummary) -> ClassRecord:
    """Takes effect with the store's next `commit`. The write begins before the record is read, so
    two applications that learn at the same time both count.
    """
    store.begin()
    record = learn(read_class(store, key), summary)
    recent = json.dumps([astuple(run) for run in record.recent], separators=(",", ":"))
    store.write(sql.SET_CLASS, (*key, record.runs, record.covered, recent, time.time()))
    return record


def read_classes(store: Store) -> Iterator[Known]:
    for agent, project, label, runs, covered, recent, updated_s in store.read(sql.CLASSES):
        key = ClassKey(agent, project, label)
        yield Known(key, class_record(key, runs, covered, recent), updated_s)


def class_record(key: ClassKey, runs: int, covered: int, recent: str) -> ClassRecord:
    summaries = tuple(RunSummary(*fields) for fields in json.loads(recent))
    return ClassRecord(summaries, runs, covered, prior_of(key.agent))
