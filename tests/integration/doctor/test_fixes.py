"""What --fix does, to real files: looked at again, undone by the command it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ramherd.core.errors import RamherdError
from ramherd.doctor.findings import CommentOut, RunCommand, SetKernel, SetMode
from ramherd.doctor.fixes import Changed, apply, can_apply
from support.roots import Root

LINE = "export BUN_JSC_gcMaxHeapSize=32768"


def undo(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True)


def proposed(root: Root, text: str, name: str = ".bashrc") -> CommentOut:
    root.write(f"home/me/{name}", text)
    fix = root.find("heap", "bun-options").fix
    assert isinstance(fix, CommentOut)
    return fix


def test_a_mode_is_set_and_undone(tmp_path: Path) -> None:
    """By the printed command, also with a space in the path."""
    path = tmp_path / "a file"
    path.write_text("")
    path.chmod(0o644)
    fix = SetMode(str(path), 0o600, 0o644)

    apply(fix, {})
    assert path.stat().st_mode & 0o777 == 0o600
    undo(fix.undo)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_mode_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    """Nor is a link followed."""
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("")
    path.chmod(0o640)
    link.symlink_to(path)

    with pytest.raises(Changed, match="has mode 0640 now, not 0644"):
        apply(SetMode(str(path), 0o600, 0o644), {})
    with pytest.raises(RamherdError, match="cannot chmod"):
        apply(SetMode(str(link), 0o600, 0o640), {})
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_line_is_taken_out_and_put_back(root: Root) -> None:
    """Byte for byte, through a link, with mode and neighbours as they were."""
    text = f"caf\u00e9=1\r\n{LINE}\nlast=1"
    fix = proposed(root, text)
    path, real = root.home / ".bashrc", root.home / "dotfiles"
    path.rename(real)
    path.symlink_to(real)
    real.chmod(0o640)
    before = real.read_bytes()

    apply(fix, {})
    assert real.read_bytes() == before.replace(LINE.encode(), b": # " + LINE.encode())
    assert real.stat().st_mode & 0o777 == 0o640
    undo(fix.undo)
    assert (real.read_bytes(), path.is_symlink()) == (before, True)


def test_a_block_stays_whole(root: Root) -> None:
    """The only line of an `if` may be at the left edge too."""
    fix = proposed(root, f"if true; then\n{LINE}\nfi\n")

    apply(fix, {})

    subprocess.run(["/bin/sh", "-n", root.home / ".bashrc"], check=True)


def test_two_lines_of_one_file_share_a_copy(root: Root) -> None:
    """The copy is the file before the first of them."""
    root.write("home/me/.bashrc", f"{LINE}\n{LINE}0\n")
    fixes = [found.fix for found in root.look("heap") if isinstance(found.fix, CommentOut)]
    copies: dict[str, str] = {}
    for fix in fixes:
        apply(fix, copies)

    assert len(fixes) == 2
    assert (root.home / ".bashrc").read_text() == f": # {LINE}\n: # {LINE}0\n"
    undo(fixes[1].undo)
    assert (root.home / ".bashrc").read_text() == f"{LINE}\n{LINE}0\n"


def test_an_older_copy_is_not_written_over(root: Root) -> None:
    """It may be the only one of its kind: the next copy has a number, and the undo names it."""
    fix = proposed(root, f"{LINE}\n")
    Path(fix.backup).write_text("precious")

    done = apply(fix, {})

    assert Path(fix.backup).read_text() == "precious"
    assert done.undo == f"cp {fix.backup}.2 {root.home}/.bashrc"
    undo(done.undo)
    assert (root.home / ".bashrc").read_text() == f"{LINE}\n"


def test_a_line_that_changed_meanwhile_is_left(root: Root) -> None:
    """Line numbers move."""
    fix = proposed(root, f"{LINE}\n")
    root.write("home/me/.bashrc", f"new=1\n{LINE}\n")

    with pytest.raises(Changed, match=r"line 1 of .* has changed"):
        apply(fix, {})
    assert not Path(fix.backup).exists()


def test_a_file_that_no_shell_reads_gets_a_plain_comment(root: Root) -> None:
    """`:` would be a broken line there."""
    name = ".config/environment.d/n.conf"
    fix = proposed(root, "BUN_JSC_gcMaxHeapSize=32768\n", name)

    apply(fix, {})

    assert (root.home / name).read_text() == "# BUN_JSC_gcMaxHeapSize=32768\n"


@pytest.mark.parametrize("text", [
    f"  {LINE}", f"{LINE}; other", f"true && {LINE}", f"{LINE} OTHER=1", f"a=1 \\\n{LINE}",
    f"{LINE} \\\nB=1", "export BUN_OPTIONS=\"--smol $(cat x)\"",
])  # fmt: skip
def test_a_line_that_does_more_is_for_the_user(root: Root, text: str) -> None:
    """Only one assignment, and nothing else, is taken out by itself."""
    root.write("home/me/.bashrc", f"{text}\n")

    found = root.find("heap", "bun-options")

    assert found.fix is None
    assert found.command.startswith("${EDITOR:-vi} +")


def test_a_value_of_the_kernel(root: Root) -> None:
    """Written if it still is what was seen."""
    path = root.write("proc/sys/vm/overcommit_memory", "2\n")
    fix = root.find("limits", "overcommit", root.host(uid=0)).fix

    assert fix == SetKernel(str(path), "vm.overcommit_memory", 0, 2)
    assert fix.undo == "sysctl -w vm.overcommit_memory=2"
    apply(fix, {})
    assert path.read_text().startswith("0")
    with pytest.raises(Changed, match="is 0"):
        apply(SetKernel(str(path), "vm.overcommit_memory", 1, 2), {})
    assert root.find("limits", "overcommit", root.host(uid=1000)).fix is None


def test_a_command_that_fails_is_told() -> None:
    """With its last line."""
    good = RunCommand((sys.executable, "-c", ""), ("true",))
    bad = RunCommand(("sh", "-c", "echo why >&2; exit 4"), ("true",))

    apply(good, {})
    with pytest.raises(RamherdError, match="exit status 4: why"):
        apply(bad, {})


def test_only_what_this_user_may_do_is_offered(tmp_path: Path) -> None:
    """A program that is not there, a file of somebody else."""
    assert not can_apply(RunCommand(("no-such-program",), ()))
    assert not can_apply(SetMode(str(tmp_path / "none"), 0, 0))
    assert not can_apply(SetKernel(str(tmp_path / "none"), "x", 0, 0))
    assert not can_apply(CommentOut(str(tmp_path / "none"), 1, "", "# ", "b"))
    if os.getuid():
        assert not can_apply(SetMode("/etc/passwd", 0o600, 0o644))
