"""The governor: who may hold how much, who waits, who makes room, who is let in.

`engine.govern` is the way in. Each rule is a pure function of a scene, a history and a policy.
"""
