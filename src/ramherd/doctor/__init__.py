"""`ramherd doctor`: reads a machine, judges the facts, and proposes fixes.

- examine: the themes in their order; each one reads its facts and checks them
- read/: files of the machine and of the user, below a root that tests make up
- facts: the values that were read
- check/: facts in, findings out (pure); one module for each module of read/
- findings: the result of a check, its severity, and its fix
- probe_pens: makes a pen and removes it, to find the kind that works here
- fixes: applies fixes, each after a second check
- render: findings as text and as JSON
"""
