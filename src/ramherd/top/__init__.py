"""`ramherd top`: everything at a glance, in a terminal.

`source.py` reads the values of one frame in a thread of its own; `panels/` and `memory_bar.py` make
rows of them (pure); the widgets draw those, with Textual. Only this package imports Textual, and
only `ramherd top` imports this package.
"""
