"""The governor: how much memory each run may hold, and which runs wait, make room and start.

`govern.govern` is the entry point. Each rule is a pure function of a scene, a history and a policy.
"""
