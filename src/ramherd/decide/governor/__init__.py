"""The governor: how much memory each run may hold, which wait, make room, and start.

`engine.govern` is the way in. Each rule is a pure function of a scene, a history and a policy.
"""
