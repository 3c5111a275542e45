"""Recorded agents replayed by real processes, under ramherd and under other tools in turn.

`python -m bench.replay` (`make bench`). All of a contest happens inside one memory cgroup whose
limit is the same for each tool; what is told of a tool is read from that cgroup and from the
agents' own state files, not from the tool.
"""
