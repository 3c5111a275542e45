"""Every key, typed into the application on fixed values."""

from typing import Any

import pytest

from integration.top.conftest import OpenTop, drive
from ramherd.core.errors import NoService
from ramherd.core.procid import ProcId
from ramherd.top import job_actions
from ramherd.top.key_bindings import KEYS
from ramherd.top.panels import PANELS
from ramherd.top.reading import ServiceReading
from ramherd.top.verb_process import VerbResult
from support.top_readings import make_empty_reading, make_job, make_reading


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The actions that were called instead of being done."""
    found: list[tuple[Any, ...]] = []

    def record(name: str) -> Any:
        def act(*jobs: Any) -> str:
            found.append((name, *(job["name"] for job in jobs)))
            return f"{name} was called"

        return act

    for name in ("cancel", "recycle", "pause", "resume", "retry", "allow"):
        monkeypatch.setattr(job_actions, name, record(name))
    for name in ("pause_all", "resume_all"):
        monkeypatch.setattr(job_actions, name, record(name))
    return found


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of verbs that were called; each prints two lines."""
    found: list[list[str]] = []

    class FakeVerb:
        def __init__(self, words: list[str], _columns: int) -> None:
            found.append(words)
            self._lines = [f"+first line of {words[0]}", "second line"]

        def read_lines(self) -> list[str]:
            lines, self._lines = self._lines, []
            return lines

        def stop(self) -> None:
            found.append(["stopped"])

    def run(words: list[str], _columns: int = 80) -> VerbResult:
        found.append(words)
        return VerbResult(0, f"{words[1]} is merged into main: 9 files")

    monkeypatch.setattr("ramherd.top.app.VerbProcess", FakeVerb)
    monkeypatch.setattr("ramherd.top.app.run_verb", run)
    return found


def selected(top: OpenTop) -> str:
    """The name of the selected job."""
    row = top.app.table.row
    return "" if row is None else row.cells[1].text


def test_arrows_and_letters_move_the_cursor() -> None:
    """As in k9s and less."""

    async def test(top: OpenTop) -> None:
        found = []
        for key in ("down", "j", "up", "k", "end", "home", "G", "g", "pagedown", "pageup"):
            await top.press(key)
            found.append(selected(top))
        assert found[:4] == ["write-tests", "port-to-v2", "write-tests", "fix-lint"]
        assert found[4:8] == ["api-client", "fix-lint", "api-client", "fix-lint"]
        assert found[9] == "fix-lint"
        await top.press("space")
        assert selected(top) == found[8]
        await top.press("b")
        assert selected(top) == "fix-lint"

    drive(test)


def test_numbers_and_tab_choose_a_panel() -> None:
    """Each panel by its number, and one after another."""

    async def test(top: OpenTop) -> None:
        for number, panel in enumerate(PANELS, 1):
            assert f" {panel.title}" in await top.press(str(number))
            assert top.app.table.panel is panel
        await top.press("tab")
        assert top.app.table.panel is PANELS[0]
        await top.press("shift+tab")
        assert top.app.table.panel is PANELS[-1]

    drive(test)


def test_slash_filters_while_it_is_typed() -> None:
    """Enter keeps the filter, Esc removes it, ! turns it round."""

    async def test(top: OpenTop) -> None:
        text = await top.press("slash", *"port")
        assert "port-to-v2" in text
        assert "upgrade-deps" not in text
        assert "Runs 1 /port" in await top.press("enter")
        assert "Runs 12" in await top.press("escape")
        assert "Runs 11 /!port" in await top.press("slash", *"!port", "enter")

    drive(test)


def test_a_filter_without_rows_says_so() -> None:
    """An empty panel would look broken."""

    async def test(top: OpenTop) -> None:
        assert "no row has 'xyz'" in await top.press("slash", *"xyz", "enter")

    drive(test)


def test_colon_jumps_to_panels_and_jobs() -> None:
    """By a name of the panel, the number or the name of a job; other words are refused."""

    async def test(top: OpenTop) -> None:
        assert "EVIDENCE" in await top.press("colon", *"orphans", "enter")
        await top.press("colon", *"14", "enter")
        assert (top.app.table.panel.id, selected(top)) == ("runs", "docs")
        await top.press("colon", *"release", "enter")
        assert (top.app.table.panel.id, selected(top)) == ("queue", "release")
        assert "no panel and no job 'nonsense'" in await top.press("colon", *"nonsense", "enter")
        await top.press("colon", "escape")
        assert "KEYS" in await top.press("colon", *"help", "enter")

    drive(test)


def test_s_sorts_and_capital_s_reverses() -> None:
    """By one column after another, then as before."""

    async def test(top: OpenTop) -> None:
        assert "NO^" in await top.press("s")
        assert "NAME^" in await top.press("s")
        await top.press("home")
        assert selected(top) == "api-client"
        assert "NAMEv" in await top.press("S")
        await top.press("home")
        assert selected(top) == "write-tests"

    drive(test)


def test_t_shows_the_tree() -> None:
    """Herds and their jobs; a panel without a tree says so."""

    async def test(top: OpenTop) -> None:
        assert "herd A7QX2M (9)" in await top.press("t")
        assert "herd A7QX2M" not in await top.press("t")
        assert "Events has no tree" in await top.press("9", "t")

    drive(test)


def test_z_shows_one_panel_alone() -> None:
    """On a wide screen all are shown."""

    async def test(top: OpenTop) -> None:
        assert "MCP 2" in top.text
        assert "MCP 2" not in await top.press("z")
        assert "MCP 2" in await top.press("z")

    drive(test, size=(200, 60))


def test_enter_shows_a_job(verbs: list[list[str]]) -> None:
    """The page of `ramherd show`; Esc goes back and ends the verb."""

    async def test(top: OpenTop) -> None:
        await top.press("enter")
        await top.await_text("first line of show")
        assert verbs == [["show", "11", "--full"]]
        assert "Runs" in await top.press("escape")
        await top.await_(lambda: verbs[-1] == ["stopped"], "end of the verb")

    drive(test)


def test_enter_shows_the_evidence_of_a_process() -> None:
    """And the text of any other row."""

    async def test(top: OpenTop) -> None:
        assert "evidence  started by the orphan" in await top.press("8", "enter")
        await top.press("escape")
        assert "five-hour window" in await top.press("5", "enter")

    drive(test)


def test_l_follows_a_log(verbs: list[list[str]]) -> None:
    """f stops following, w wraps, / filters, q goes back."""

    async def test(top: OpenTop) -> None:
        await top.press("l")
        assert "follow on" in await top.await_text("second line")
        assert verbs == [["logs", "--follow", "-n", "1000", "11"]]
        assert "follow off" in await top.press("f")
        await top.press("w", "down", "up", "pagedown", "pageup", "home", "end", "j", "k", "g", "G")
        text = await top.press("slash", *"first")
        assert "second line" not in text
        await top.press("enter")
        assert "second line" in await top.press("slash", "escape")
        assert "Runs" in await top.press("q")

    drive(test)


def test_d_shows_the_changes(verbs: list[list[str]]) -> None:
    """Of the selected job."""

    async def test(top: OpenTop) -> None:
        await top.press("4", "d")
        await top.await_text("first line of diff")
        assert verbs[0][0] == "diff"

    drive(test)


def test_m_merges_after_a_question(verbs: list[list[str]]) -> None:
    """And shows every line that the verb printed."""

    async def test(top: OpenTop) -> None:
        await top.press("4", "slash", *"rename", "enter")
        assert "merge rename-api into the branch" in await top.press("m")
        await top.press("y")
        await top.await_text("6 is merged into main: 9 files")
        assert verbs == [["merge", "6"]]

    drive(test)


@pytest.mark.parametrize(
    ("panel", "key", "call"),
    [
        ("2", "c", ("cancel", "fix-lint")),
        ("3", "c", ("cancel", "cleanup")),
        ("2", "R", ("recycle", "fix-lint")),
        ("2", "P", ("pause_all",)),
    ],
)
def test_a_harmful_key_asks_first(
    calls: list[tuple[Any, ...]], panel: str, key: str, call: tuple[str, ...]
) -> None:
    """n does nothing, y does it."""

    async def test(top: OpenTop) -> None:
        await top.press(panel, key, "n")
        assert calls == []
        await top.press(key, "escape")
        assert calls == []
        await top.press(key, "y")
        await top.await_text(f"{call[0]} was called")
        assert calls == [call]

    drive(test)


@pytest.mark.parametrize(
    ("keys", "call"),
    [
        ("4r", ("retry", "rename-api")),
        ("3p", ("pause", "cleanup")),
        ("3u", ("resume", "cleanup")),
        ("2U", ("resume_all",)),
    ],
)
def test_a_harmless_key_acts_at_once(
    calls: list[tuple[Any, ...]], keys: str, call: tuple[str, ...]
) -> None:
    """It can be undone."""

    async def test(top: OpenTop) -> None:
        await top.press(*keys)
        await top.await_text(f"{call[0]} was called")
        assert calls[0][0] == call[0]

    drive(test)


def test_a_allows_the_denied_tools_after_a_question(calls: list[tuple[Any, ...]]) -> None:
    """The question has the rules."""

    async def test(top: OpenTop) -> None:
        text = await top.press("1", "slash", *"denied", "enter", "a")
        assert "Bash(npm test)" in text
        assert "WebFetch" in text
        await top.press("y")
        await top.await_text("allow was called")
        assert calls == [("allow", "add-tests")]

    drive(test)


def test_a_says_that_nothing_was_denied(calls: list[tuple[Any, ...]]) -> None:
    """Of another job."""

    async def test(top: OpenTop) -> None:
        assert "was denied nothing" in await top.press("1", "a")
        assert calls == []

    drive(test)


def test_x_ends_a_stray_after_its_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that was shown: its pid with its start."""
    reaped: list[ProcId] = []

    def reap(proc: ProcId, _config: Any) -> str:
        reaped.append(proc)
        return "1 ended, 412 MiB came back"

    monkeypatch.setattr("ramherd.top.app.reap", reap)

    async def test(top: OpenTop) -> None:
        text = await top.press("8", "x")
        assert "end this process?" in text
        assert "evidence  started by the orphan playwright-mcp (pid 3300)" in text
        await top.press("n")
        assert reaped == []
        await top.press("x", "y")
        await top.await_text("412 MiB came back")
        assert reaped == [ProcId(3301, 33010)]
        assert top.source.scans == 1

    drive(test)


def test_x_needs_a_process() -> None:
    """A server has several."""

    async def test(top: OpenTop) -> None:
        assert "select a process first" in await top.press("7", "x")

    drive(test)


def test_h_hides_a_row_of_needs_you() -> None:
    """Until top ends; the number in the tab falls too."""

    async def test(top: OpenTop) -> None:
        assert "Needs you 6" in await top.press("1")
        assert "Needs you 5" in await top.press("h")
        await top.show(make_reading())
        assert "Needs you 5" in top.text

    drive(test)


def test_ctrl_r_reads_now() -> None:
    """A new scan of the processes too."""

    async def test(top: OpenTop) -> None:
        before = top.source.reads
        await top.press("ctrl+r")
        await top.await_(lambda: top.source.reads > before, "another reading")
        assert top.source.scans == 1

    drive(test)


def test_question_mark_lists_the_keys() -> None:
    """All of them."""

    async def test(top: OpenTop) -> None:
        text = await top.press("question_mark")
        assert all(use.what in text for use in KEYS)

    drive(test, size=(80, 60))


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_q_and_ctrl_c_quit(key: str) -> None:
    """At once."""

    async def test(top: OpenTop) -> None:
        await top.press(key)
        assert top.app.return_code == 0

    drive(test)


def test_colon_q_quits() -> None:
    """As in vi."""

    async def test(top: OpenTop) -> None:
        await top.press("colon", "q", "enter")
        assert top.app.return_code == 0

    drive(test)


def test_an_error_is_one_line_with_its_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """For some seconds, instead of the keys."""

    def cancel(_job: Any) -> str:
        raise NoService("no service is running", hint="start one: ramherd up")

    monkeypatch.setattr(job_actions, "cancel", cancel)

    async def test(top: OpenTop) -> None:
        await top.press("c", "y")
        await top.await_text("no service is running (start one: ramherd up)")

    drive(test)


def test_keys_of_jobs_need_one() -> None:
    """Nothing is selected in an empty panel."""

    async def test(top: OpenTop) -> None:
        for key in "ldmcrapuR":
            assert "select a job first" in await top.press(key)
        await top.press("enter", "x", "h", "s", "S", "t", "down", "G")

    drive(test, reading=make_empty_reading())


def test_the_cursor_stays_on_its_row() -> None:
    """While others come and go above it."""

    async def test(top: OpenTop) -> None:
        await top.press("down", "down")
        live = make_reading().live
        await top.show(make_reading(live=(make_job(1, "new"), *live[1:])))
        assert selected(top) == "port-to-v2"
        await top.show(make_reading(live=live[:2]))
        assert selected(top) == "write-tests"

    drive(test)


def test_the_mouse_works() -> None:
    """A click on a row, a title of a column, a tab, a key, an answer; twice on a row; the wheel."""

    async def test(top: OpenTop) -> None:
        await top.pilot.click("#runs", offset=(5, 4))
        assert selected(top) == "port-to-v2"
        await top.pilot.click("#runs", offset=(5, 1))
        assert "NAME^" in top.text
        await top.pilot.click("#tabs", offset=(top.text.splitlines()[3].index("Strays"), 0))
        await top.pilot.pause()
        assert top.app.table.panel.id == "strays"
        await top.pilot.click("#strays", offset=(5, 2), times=2)
        assert "evidence" in await top.await_text("verdict")
        await top.press("escape")
        await top.pilot.click("#keys", offset=(top.text.splitlines()[-1].index("? help"), 0))
        await top.await_text("KEYS")

    drive(test)


def test_a_click_chooses_a_panel_on_a_wide_screen() -> None:
    """And its keys."""

    async def test(top: OpenTop) -> None:
        await top.pilot.click("#strays", offset=(5, 2))
        await top.pilot.pause()
        assert top.app.table.panel.id == "strays"
        assert "x reap" in top.text

    drive(test, size=(200, 60))


@pytest.mark.parametrize("size", [(1, 1), (10, 4), (40, 10), (80, 24), (139, 36), (300, 100)])
def test_a_resize_never_breaks_it(size: tuple[int, int]) -> None:
    """Any size, with any panel, a page or a question open."""

    async def test(top: OpenTop) -> None:
        for keys in ("1", "2", "8", "x", "n?"):
            await top.press(*(key.replace("?", "question_mark") for key in keys))
            await top.pilot.resize_terminal(*size)
            await top.pilot.pause()
            await top.pilot.resize_terminal(80, 24)
            await top.pilot.pause()
        assert "Strays" in await top.press("escape")

    drive(test)


def test_a_lost_service_is_shown_until_it_is_back() -> None:
    """In the first line and among what needs the user."""

    async def test(top: OpenTop) -> None:
        gone = "the service has ended or was killed: ramherd up starts it again"
        await top.show(make_reading(service=ServiceReading(problem=gone)))
        assert "service lost" in top.text.splitlines()[0]
        assert gone[:30] in top.text
        await top.show(make_reading())
        assert "up 2 h" in top.text.splitlines()[0]

    drive(test)


@pytest.mark.parametrize("keys", [("2", "t"), ("8", "t"), ("slash", *"docs")])
def test_the_tabs_count_the_rows_of_a_panel_however_they_are_shown(keys: tuple[str, ...]) -> None:
    """A tree or a filter changes no number, now or with the next reading."""

    async def test(top: OpenTop) -> None:
        before = top.text.splitlines()[3].replace(" ", "")
        await top.press(*keys)
        await top.show(top.source.reading)

        assert "Runs:12" in before
        assert top.text.splitlines()[3].replace(" ", "") == before

    drive(test, size=(200, 60))


def test_a_panel_that_is_empty_stays_small_after_a_resize() -> None:
    """From one panel to all of them: the heights follow rows that were not read before."""

    async def test(top: OpenTop) -> None:
        await top.pilot.resize_terminal(200, 60)
        await top.await_text("Limits")
        await top.await_(lambda: top.app.query_one("#limits").outer_size.height == 3, "small panel")

    drive(test, reading=make_empty_reading())
