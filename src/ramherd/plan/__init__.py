"""The capacity planner, `ramherd plan`: how many agents a machine holds, at which risk.

- request: the question, read from options and checked
- run_shapes, published_shape: the memory of one run over time, drawn from tables
- sizes: measured sizes of MCP servers and of single operations
- agent_groups, forecast: many random herds on the simulator's engine
- make_plan, past_runs: the plan, what would raise its number, what binds first, and what is known
- arithmetic, advice: `--explain`, and what to do
- plan_text, memory_chart, page: the plan on a terminal and as a page
"""
