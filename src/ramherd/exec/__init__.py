"""`ramherd exec`: one interactive session in a pen, as if it ran bare.

Whoever types a command waits for it, so what runs before the program starts imports no
dataclasses, pathlib or typing (45 ms of the 60 that a start may cost). Those modules, and with
them pens, admission and the store in full, are imported where there is a reason to: memory is
short, something is left behind, a limit was hit, or this process was killed. The rule is
held by tests/integration/exec/test_exec_start.py.
"""
