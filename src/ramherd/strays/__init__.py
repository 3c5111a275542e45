"""Processes that no run owns: found, judged with evidence, and ended.

- scan: reads the machine, judges every process, and records the scan for later ones
- read/: the process table, programs, descriptors, sockets and environments
- ancestry: records the processes below an agent, for the time after its end
- nouns: processes with their programs, evidence, verdicts
- judge/ (pure): software (which programs are agents, servers, tools), process_tree (which process
  inherited which), orphan_proofs (proofs that a process is not needed any more), verdict, trends
  (idle, growth), warnings, reap_plan (the processes that `reap` may end), census_rows, watch_alerts
- reap: ends strays for `ramherd reap`
- left_behind: ends processes that the tools of a session left, at once, for the hook
- watch: one look of `ramherd watch`: the census of all agents, and its alerts
- timer: runs `ramherd reap` and `ramherd watch` from systemd, launchd or cron
- render, render_census: the text of `ps` and `reap`, and of `watch`
"""
