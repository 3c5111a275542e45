"""`python -m ramherd.hook`: what Claude Code calls for its own subagents.

Every call is a wait for whoever uses Claude, so this loads no dataclasses, pathlib or argparse
(tests/integration/hook/test_hook.py holds that). Whatever goes wrong in here, Claude goes on.
"""
