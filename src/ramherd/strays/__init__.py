"""Processes that no run owns: found, judged with evidence, and ended.

- scan: reads the machine, judges every process, and records the scan for later ones
- read/: the process table, what a process runs, its descriptors, sockets and environment
- ancestry: a record of which processes were below an agent, for when the agent is gone
- nouns: processes with what they run, evidence, verdicts
- judge/ (pure): software (which programs are agents, servers, tools), process_tree (who inherited
  whom), orphan_proofs (what proves that nobody wants a process), verdict, trends (idle, growth),
  warnings, reap_plan (what `reap` may end)
- reap: ends strays for `ramherd reap`
- left_behind: ends at once what the tools of a session left, for the hook
- timer: runs `ramherd reap` from systemd, launchd or cron
- render: the text of `ps` and `reap`
"""
