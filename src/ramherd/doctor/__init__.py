"""`ramherd doctor`: reads a machine, judges what it finds, and proposes fixes.

- examine: the themes in their order; each one reads its facts and checks them
- read/: files of the machine and of the user, below a root that tests make up
- facts: what was read
- check/: facts in, findings out (pure); one module for each module of read/
- findings: what a check reports, its severity, and the fix for it
- probe_pens: makes a pen and removes it, to know which kind works here
- fixes: carries out fixes, each checked again before
- render: findings as text and as JSON
"""
