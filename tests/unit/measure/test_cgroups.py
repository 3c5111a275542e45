"""Where we stand in the cgroup trees: texts captured on machines of each kind."""

from pathlib import Path

import pytest

from ramherd.core.model import Limit
from ramherd.core.units import GIB, MIB
from ramherd.measure.cgroups import (
    parse_file_bytes_v1,
    parse_flat,
    parse_mounts,
    parse_own_cgroups,
    place,
    read_limits,
    read_trees,
)
from ramherd.measure.machine import read_machine

HYBRID_OWN = """\
9:name=systemd:/
8:pids:/a
4:memory:/process_api/55a6
2:cpu,cpuacct:/b
0::/c
"""
HYBRID_MOUNTS = """\
23 1 254:0 / / rw,relatime - ext4 /dev/root rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_OWN = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n"
V2_MOUNTS = """\
26 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate
"""
DOCKER_V1_OWN = "4:memory:/docker/3f1c\n1:name=systemd:/docker/3f1c\n"
DOCKER_V1_MOUNTS = """\
813 812 0:30 /docker/3f1c /sys/fs/cgroup/memory ro,nosuid master:19 - cgroup cgroup rw,memory
814 812 0:31 /docker/3f1c /sys/fs/cgroup/systemd ro - cgroup cgroup rw,xattr,name=systemd
"""


def own_root(tmp_path: Path, own: str, mounts: str, *made: str) -> Path:
    """A /proc of these texts, whose mount points are below `tmp_path`."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(own)
    moved = mounts.replace(" /sys/fs/cgroup", f" {tmp_path}/sys/fs/cgroup")
    (tmp_path / "proc/self/mountinfo").write_text(moved)
    for name in made:
        (tmp_path / "sys/fs/cgroup" / name).mkdir(parents=True, exist_ok=True)
    return tmp_path / "proc"


def test_own_cgroups_by_controller_and_the_one_of_v2() -> None:
    """`4:memory:/a` is v1, `0::/a` is v2, and one line may hold two controllers."""
    v1, v2 = parse_own_cgroups(HYBRID_OWN)

    assert v1 == {
        "name=systemd": "/",
        "pids": "/a",
        "memory": "/process_api/55a6",
        "cpu": "/b",
        "cpuacct": "/b",
    }
    assert v2 == "/c"
    assert parse_own_cgroups("4:memory:/a\n") == ({"memory": "/a"}, None)
    assert parse_own_cgroups("") == ({}, None)


def test_a_path_may_hold_a_colon() -> None:
    """systemd escapes much, users do not."""
    assert parse_own_cgroups("0::/a:b/c:1\n")[1] == "/a:b/c:1"


def test_mounts_by_controller_and_the_one_of_v2() -> None:
    """With the root that the mount shows; other file systems are passed over."""
    v1, v2 = parse_mounts(HYBRID_MOUNTS)

    assert v1["memory"] == ("/sys/fs/cgroup/memory", "/")
    assert v1["cpu"] == v1["cpuacct"] == ("/sys/fs/cgroup/cpu,cpuacct", "/")
    assert v1["name=systemd"] == ("/sys/fs/cgroup/systemd", "/")
    assert v2 == ("/sys/fs/cgroup/unified", "/")
    assert parse_mounts(V2_MOUNTS) == ({}, ("/sys/fs/cgroup", "/"))


def test_of_two_mounts_the_first_counts() -> None:
    """The second is mostly a bind mount for somebody's container."""
    text = V2_MOUNTS + "99 1 0:30 / /mnt/other rw - cgroup2 cgroup2 rw\n"

    assert parse_mounts(text)[1] == ("/sys/fs/cgroup", "/")


def test_a_space_in_a_mount_point_is_read_as_one() -> None:
    """mountinfo writes it as an octal number, as it does tab, newline and backslash."""
    text = "1 2 0:30 / /mnt/a\\040b\\134c rw - cgroup2 cgroup2 rw\n"

    assert parse_mounts(text)[1] == ("/mnt/a b\\c", "/")


def test_a_space_beside_an_umlaut_keeps_both() -> None:
    """Escapes stand for bytes, the rest is UTF-8."""
    text = "1 2 0:30 / /mnt/\u00e4\\040b rw - cgroup2 cgroup2 rw\n"

    assert parse_mounts(text)[1] == ("/mnt/\u00e4 b", "/")


def test_a_stick_with_a_strange_name_is_no_reason_to_fail() -> None:
    """Some other file system is mounted at a name that is no UTF-8 and has a space in it."""
    text = "1 2 8:1 / /media/\udcff\\040x rw - vfat /dev/sdb1 rw\n" + V2_MOUNTS

    assert parse_mounts(text)[1] == ("/sys/fs/cgroup", "/")


def test_a_mount_point_may_hold_what_python_takes_for_a_line_end() -> None:
    """A line ends at a newline: those in names are escaped, U+2028 is not."""
    text = "1 2 8:1 / /media/a\u2028b rw - vfat /dev/sdb1 rw\n" + V2_MOUNTS

    assert parse_mounts(text)[1] == ("/sys/fs/cgroup", "/")


@pytest.mark.parametrize(
    ("mount", "path", "found"),
    [
        (("/cg", "/"), "/", "/cg"),
        (("/cg", "/"), "/a/b", "/cg/a/b"),
        (("/cg", "/docker/3f"), "/docker/3f", "/cg"),
        (("/cg", "/docker/3f"), "/docker/3f/run", "/cg/run"),
        (("/cg", "/../.."), "/", "/cg"),
    ],
)
def test_a_cgroup_is_below_its_mount(mount: tuple[str, str], path: str, found: str) -> None:
    """Less the part that the mount starts at: in a container that is not `/`."""
    assert place(mount, path) == Path(found)


def test_a_cgroup_of_a_like_name_is_not_below_the_mount() -> None:
    """/docker/3f is no parent of /docker/3f1c."""
    assert place(("/cg", "/docker/3f"), "/docker/3f1c") != Path("/cg/1c")


def test_the_trees_of_a_hybrid_machine(tmp_path: Path) -> None:
    """v1 by controller and v2 beside it; what has no directory is not there."""
    proc = own_root(
        tmp_path, HYBRID_OWN, HYBRID_MOUNTS, "memory/process_api/55a6", "pids/a", "unified/c"
    )
    at = tmp_path / "sys/fs/cgroup"

    trees = read_trees(proc)

    assert trees.v1 == {"memory": at / "memory/process_api/55a6", "pids": at / "pids/a"}
    assert trees.v2 == at / "unified/c"


def test_the_tree_of_a_v2_machine(tmp_path: Path) -> None:
    """One tree, and no controllers of v1."""
    own = "user.slice/user-1000.slice/user@1000.service/app.slice/term.scope"
    trees = read_trees(own_root(tmp_path, V2_OWN, V2_MOUNTS, own))

    assert (trees.v1, trees.v2) == ({}, tmp_path / "sys/fs/cgroup" / own)


def test_the_trees_inside_a_container(tmp_path: Path) -> None:
    """The mount starts at the container's own cgroup, so that is where we are."""
    proc = own_root(tmp_path, DOCKER_V1_OWN, DOCKER_V1_MOUNTS, "memory", "systemd")
    trees = read_trees(proc)

    assert trees.v1["memory"] == tmp_path / "sys/fs/cgroup/memory"
    assert trees.v2 is None


def test_a_machine_without_cgroups_has_no_trees(tmp_path: Path) -> None:
    """Files that are not there, as on a kernel without them."""
    trees = read_trees(tmp_path)

    assert (trees.v1, trees.v2) == ({}, None)


def test_flat_files_are_names_and_numbers() -> None:
    """memory.oom_control, memory.events, as text or as bytes."""
    text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"

    assert parse_flat(text) == parse_flat(text.encode())
    assert parse_flat(text)["oom_kill"] == 3
    assert parse_flat("") == {}


def test_page_cache_is_what_two_lines_say() -> None:
    """The totals with all children, not the cgroup's own, and not names that end like them."""
    stat = b"cache 9\nactive_file 5\ninactive_file 6\ntotal_cache 99\n"
    total = b"total_inactive_file 300\ntotal_active_file 20\ntotal_unevictable 0\n"

    assert parse_file_bytes_v1(stat + total) == 320
    assert parse_file_bytes_v1(stat) == 0


def write_v1(path: Path, limit: int, usage: int, cache: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (path / "memory.usage_in_bytes").write_text(f"{usage}\n")
    (path / "memory.stat").write_text(
        f"cache {cache}\ntotal_inactive_file {cache}\ntotal_active_file 0\n"
    )


def write_v2(path: Path, most: str, anon: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.procs").write_text("")
    (path / "memory.max").write_text(f"{most}\n")
    (path / "memory.stat").write_text(f"anon {anon}\nfile 5\nkernel 0\nshmem 0\n")


def test_every_limit_on_the_way_up_is_found_v1(tmp_path: Path) -> None:
    """With what is used of each, without page cache; the largest number there is means none."""
    proc = own_root(tmp_path, "4:memory:/out/in\n", HYBRID_MOUNTS)
    memory = tmp_path / "sys/fs/cgroup/memory"
    write_v1(memory, 9223372036854771712, 9 * GIB, GIB)
    write_v1(memory / "out", 2 * GIB, GIB, 100 * MIB)
    write_v1(memory / "out/in", GIB, 300 * MIB, 100 * MIB)

    limits = list(read_limits(read_trees(proc)))

    assert limits == [Limit(GIB, 200 * MIB), Limit(2 * GIB, 924 * MIB)]


def test_every_limit_on_the_way_up_is_found_v2(tmp_path: Path) -> None:
    """`max` is none; the root of the tree has no such file."""
    proc = own_root(tmp_path, "0::/a/b\n", V2_MOUNTS)
    root = tmp_path / "sys/fs/cgroup"
    write_v2(root / "a", str(GIB), 5 * MIB)
    write_v2(root / "a/b", "max", MIB)
    (root / "cgroup.procs").write_text("")

    assert list(read_limits(read_trees(proc))) == [Limit(GIB, 5 * MIB)]


def test_the_machine_is_its_memory_and_our_limits(tmp_path: Path) -> None:
    """What is free is what is available and below each limit."""
    proc = own_root(tmp_path, "0::/a\n", V2_MOUNTS)
    (proc / "meminfo").write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    write_v2(tmp_path / "sys/fs/cgroup/a", str(GIB), 256 * MIB)

    machine = read_machine(read_trees(proc), proc)

    assert (machine.total_bytes, machine.available_bytes) == (8 * GIB, 4 * GIB)
    assert (machine.most_bytes, machine.free_bytes) == (GIB, 768 * MIB)


def write_own(proc: Path, pid: int, text: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cgroup").write_text(text)


def test_other_ramherds_count_in_the_limits_that_they_live_under_v1(tmp_path: Path) -> None:
    """One beside us in the outer cgroup, one elsewhere, one whose name only begins like ours,
    and one that is gone.
    """
    proc = own_root(tmp_path, "4:memory:/out/in\n", HYBRID_MOUNTS)
    memory = tmp_path / "sys/fs/cgroup/memory"
    write_v1(memory / "out", 2 * GIB, GIB, 0)
    write_v1(memory / "out/in", GIB, 300 * MIB, 0)
    for pid, place_ in enumerate(("/out/two", "/else", "/out/inner", "/out/in/deep"), 11):
        write_own(proc, pid, f"4:memory:{place_}\n")
        (memory / place_[1:]).mkdir(parents=True)

    herds = [(11, 1), (12, 10), (13, 100), (14, 1000), (99, 10000)]
    limits = read_limits(read_trees(proc), herds, proc)

    assert [limit.herds_used_bytes for limit in limits] == [1000, 1101]


def test_other_ramherds_count_in_the_limits_that_they_live_under_v2(tmp_path: Path) -> None:
    """And in that of the machine wherever they are."""
    proc = own_root(tmp_path, "0::/a\n", V2_MOUNTS)
    (proc / "meminfo").write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    write_v2(tmp_path / "sys/fs/cgroup/a", str(GIB), 5 * MIB)
    for pid, place_ in ((11, "a/b"), (12, "c")):
        write_own(proc, pid, f"0::/{place_}\n")
        (tmp_path / "sys/fs/cgroup" / place_).mkdir()

    machine = read_machine(read_trees(proc), proc, [(11, 3), (12, 5)])

    assert [limit.herds_used_bytes for limit in machine.limits] == [3]
    assert machine.herds_used_bytes == 8
