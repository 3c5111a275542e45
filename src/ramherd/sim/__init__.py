"""Fake agents that really allocate memory, and a simulator of herds on recorded memory.

- profiles, synthetic_runs: memory over time, from trace files or shaped like measured runs
- agent, agent_state, allocator: the fake agent (`python -m ramherd.sim.agent`)
- course, sim_jobs, application, world: the simulator, with the governor's own code
- oracle, peers, unlimited: what the governor is compared with
- simulate, scenarios, result, plot: one simulation, what it found, and a picture of it
- leak_set, bench: the simulated benchmarks
"""
