"""A real claude's own subagents wait for memory."""

import os
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from e2e.hook.hooked import World
from integration.conftest import await_, ours
from llm import LLM

HELD_S = 0.4


@pytest.fixture
def world(installed: None, tmp_path: Path, llm: LLM) -> Iterator[World]:
    made = World(tmp_path, llm)
    yield made
    made.close()


def many(count: int, script: str = "part", name: str = "") -> list[dict[str, object]]:
    prompts = [f"{name} part {number} [script {script}]" for number in range(count)]
    return [{"agents": prompts}, {"say": "All are back."}]


def test_eight_subagents_with_room_for_two(world: World) -> None:
    """All of them finish, never more than two at a time, and the session is done."""
    world.llm.add({"eight": many(8), "part": [{"wait_s": HELD_S, "say": "Done."}]})
    world.limit(slots=2)

    result = world.start("eight").result()

    assert result["result"] == "All are back."
    assert len(world.llm.of("part")) == 8
    assert world.at_a_time("part", HELD_S) == 2
    (answers,) = [talk.texts("result") for talk in world.llm.of("eight") if talk.step == 1]
    assert all("Done." in answer for answer in answers)
    assert world.slots() == []


def test_without_room_the_model_is_told_so(world: World) -> None:
    """After hook_wait, in a sentence that says how much there is and what to do instead."""
    world.llm.add({"two": many(2), "part": [{"gate": "go", "say": "Done."}]})
    world.limit(slots=1)
    session = world.start("two", env={"RAMHERD_HOOK_WAIT": "1s"})
    world.await_slots(2)
    world.await_slots(1)
    world.llm.open("go")

    assert session.result()["result"] == "All are back."
    (answers,) = [talk.texts("result") for talk in world.llm.of("two") if talk.step == 1]
    (denied,) = [answer for answer in answers if "ramherd" in answer]
    assert "no memory for another subagent after waiting 1." in denied
    assert "it needs 512 MiB, but only" in denied
    assert "running: 1 in this session, 1 on this machine" in denied
    assert "do this task yourself" in denied


def test_two_sessions_share(world: World) -> None:
    """The second does not wait for all of the first one's subagents, and both are done."""
    part = [{"gate": "all ask", "wait_s": HELD_S, "say": "Done."}]
    world.llm.add({"one": many(4, "part-one", "first"), "part-one": part})
    world.llm.add({"two": many(4, "part-two", "second"), "part-two": part})
    world.limit(slots=2, sessions=2)
    sessions = [world.start("one"), world.start("two")]
    world.await_slots(8)
    world.llm.open("all ask")

    assert {session.result()["result"] for session in sessions} == {"All are back."}
    starts = sorted(
        (talk.at_s, sign)
        for script, sign in (("part-one", 1), ("part-two", -1))
        for talk in world.llm.of(script)
        if talk.step == 0
    )
    lead = list(accumulate(sign for _at, sign in starts))
    assert len(lead) == 8
    # Two to begin with, and one of each pair after that; in plain order it would be four.
    assert max(map(abs, lead)) <= 3


def test_a_killed_session_frees_its_leases(world: World) -> None:
    """kill -9: the other session's subagent waits no longer."""
    world.llm.add(
        {
            "greedy": many(2, "stuck"), "modest": many(1),
            "stuck": [{"gate": "never", "say": ""}], "part": [{"say": "Done."}],
        }
    )  # fmt: skip
    world.limit(slots=2)
    greedy = world.start("greedy")
    world.llm.await_step("stuck", 0)
    await_(lambda: len(world.llm.of("stuck")) == 2, "both subagents of the first session")
    modest = world.start("modest")
    world.await_slots(3)
    assert world.llm.of("part") == []

    greedy.process.kill()

    assert modest.result()["result"] == "All are back."
    assert len(world.llm.of("part")) == 1


def test_an_interrupted_turn_frees_its_slots(world: World) -> None:
    """Escape: the session stays, and Claude calls no hook; the next one who asks finds out."""
    # claude 2.1.325 refuses to run a bare `sleep 300`.
    forever = [{"shell": "tail -f /dev/null"}, {"say": ""}]
    world.llm.add({"long": many(2, "stuck"), "stuck": forever})
    world.llm.add({"modest": many(1), "part": [{"say": "Done."}]})
    world.limit(slots=2)
    flags = ("--dangerously-skip-permissions", "--input-format", "stream-json")
    patient = world.start("none", *flags)
    patient.tell(type="user", message={"role": "user", "content": "go [script long]"})
    await_(lambda: len(world.llm.of("stuck")) == 2, "both subagents of the first session")
    modest = world.start("modest")
    world.await_slots(3)

    patient.tell(type="control_request", request_id="1", request={"subtype": "interrupt"})

    assert modest.result()["result"] == "All are back."
    assert patient.process.poll() is None


def test_a_subagent_denied_by_permission_frees_its_slot(world: World) -> None:
    """At once, not at the end of the turn."""
    world.llm.add({"denied": [{"agents": ["part [script part]"]}, {"gate": "go", "say": "Well."}]})
    rule = '{"permissions": {"deny": ["Agent(general-purpose)"]}}'
    session = world.start("denied", "--settings", rule)
    world.llm.await_step("denied", 1)

    world.await_slots(0)
    world.llm.open("go")
    assert session.result()["result"] == "Well."
    assert world.llm.of("part") == []


def test_a_subagent_that_failed_frees_its_slot(world: World) -> None:
    """Of one that the API refused Claude tells no SubagentStop, only how the call went."""
    world.llm.add(
        {"failed": [{"agents": ["part [script broken]"]}, {"gate": "go", "say": "Well."}]}
    )
    session = world.start("failed")
    world.llm.await_step("failed", 1)

    world.await_slots(0)
    world.llm.open("go")
    assert session.result()["result"] == "Well."


def test_one_in_the_background_that_failed_frees_its_slot(world: World) -> None:
    """While its session is still at work: the next one who asks finds out."""
    behind = {"prompt": "part [script broken]", "run_in_background": True}
    world.llm.add({"behind": [{"agents": [behind]}, {"gate": "go", "say": "Well."}, {"say": "."}]})
    world.llm.add({"modest": many(1), "part": [{"say": "Done."}]})
    world.limit(slots=1)
    busy = world.start("behind")
    world.llm.await_step("behind", 1)

    assert world.start("modest").result()["result"] == "All are back."
    assert busy.process.poll() is None
    world.llm.open("go")
    busy.result()


def test_subagents_in_the_background_keep_their_slots(world: World) -> None:
    """The turn ends before they do."""
    behind = {"prompt": "part [script part]", "run_in_background": True}
    world.llm.add({"behind": [{"agents": [behind]}, {"say": "Later."}]})
    world.llm.add({"part": [{"gate": "go", "say": "Done."}]})
    session = world.start("behind")
    world.llm.await_step("part", 0)
    world.llm.await_step("behind", 1)

    world.await_slots(1)
    world.llm.open("go")
    session.result()
    assert world.slots() == []


def test_what_tools_of_a_subagent_left_is_ended_with_it(world: World) -> None:
    """And nothing else: what the session itself started goes on until its end."""
    leave = "RAMHERD_TEST_{} setsid sleep 300 >/dev/null 2>&1 & sleep 0"
    own, other = (leave.format(f"{name}=1") for name in ("MAIN", "PART"))
    world.llm.add(
        {
            "main": [
                {"shell": own}, {"agents": ["part [script part]"]}, {"gate": "go", "say": "Bye."},
            ],
            "part": [{"shell": other}, {"gate": "part", "say": "Done."}],
        }
    )  # fmt: skip
    session = world.start("main")
    world.llm.await_step("part", 1)
    assert len(ours("RAMHERD_TEST_MAIN")) == len(ours("RAMHERD_TEST_PART")) == 1
    world.llm.open("part")
    world.llm.await_step("main", 2)

    assert ours("RAMHERD_TEST_PART") == []
    assert len(ours("RAMHERD_TEST_MAIN")) == 1
    world.llm.open("go")
    session.result()
    assert ours("RAMHERD_TEST_MAIN") == []


def test_a_subagent_of_a_subagent_does_not_wait(world: World) -> None:
    """It would wait for the slot of the one that called it: it is denied at once."""
    world.llm.add({"main": many(1, "middle"), "middle": many(1)})
    world.limit(slots=1)

    assert world.start("main").result()["result"] == "All are back."

    (answer,) = [talk.texts("result") for talk in world.llm.of("middle") if talk.step == 1]
    assert "no memory for another subagent: it needs 512 MiB" in answer[0]


def test_inside_a_pen_the_hook_does_nothing(world: World) -> None:
    """There the governor of the run decides."""
    world.llm.add({"eight": many(2), "part": [{"wait_s": HELD_S, "say": "Done."}]})
    world.limit(slots=1)

    world.start("eight", env={"RAMHERD_RUN": "01RUN"}).result()

    assert world.at_a_time("part", HELD_S) == 2
    assert not os.path.exists(world.place / "runtime/ledger.db") or world.slots() == []


def test_more_subagents_in_a_turn_than_claude_runs(world: World) -> None:
    """Above its cap of 20 Claude refuses a subagent: the rest wait, however short hook_wait is."""
    world.llm.add({"many": many(25), "part": [{"wait_s": HELD_S, "say": "Done."}]})
    world.env["RAMHERD_SUBAGENT_MEMORY"] = "8MiB"

    world.start("many", env={"RAMHERD_HOOK_WAIT": "500ms"}).result()

    (answers,) = [talk.texts("result") for talk in world.llm.of("many") if talk.step == 1]
    assert ["Done." in answer for answer in answers] == [True] * 25
    assert world.slots() == []


def test_claudes_cap_is_read_from_its_settings(world: World) -> None:
    """Here from those of the project."""
    world.llm.add({"five": many(5), "part": [{"wait_s": HELD_S, "say": "Done."}]})
    settings = world.place / "work/.claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"env": {"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": "2"}}')

    world.start("five").result()

    (answers,) = [talk.texts("result") for talk in world.llm.of("five") if talk.step == 1]
    assert ["Done." in answer for answer in answers] == [True] * 5
    assert world.at_a_time("part", HELD_S) == 2


def test_two_sessions_take_turns_under_max_parallel(world: World) -> None:
    """The second session's first subagent starts before the first session's fifth."""
    part = [{"wait_s": HELD_S / 2, "say": "Done."}]
    first = [{"gate": "both ask", "wait_s": HELD_S / 2, "say": "Done."}]
    world.llm.add({"one": many(8, "part-one", "first"), "part-one": first})
    world.llm.add({"two": many(4, "part-two", "second"), "part-two": part})
    world.env |= {"RAMHERD_MAX_PARALLEL": "2", "RAMHERD_SUBAGENT_MEMORY": "8MiB"}
    sessions = [world.start("one")]
    await_(lambda: len(world.llm.of("part-one")) == 2, "two subagents of the first session")
    sessions.append(world.start("two"))
    await_(lambda: len(world.line()) == 10, "ten that wait")
    world.llm.open("both ask")

    assert {session.result()["result"] for session in sessions} == {"All are back."}
    one, two = (
        sorted(talk.at_s for talk in world.llm.of(script) if talk.step == 0)
        for script in ("part-one", "part-two")
    )
    assert (len(one), len(two)) == (8, 4)
    assert two[0] < one[4]
