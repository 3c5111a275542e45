"""`ramherd exec`: one program on the user's terminal, in a pen, as if it ran bare.

The person who types the command waits for it, so a start imports only what it needs: the rules of
a run's end (`session_end.py`) are imported while the program runs.
"""
