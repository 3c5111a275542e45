"""`ramherd exec`: one program on the user's terminal, in a pen, as if it ran bare.

The user waits for each start, so a start imports only the modules that it needs: the rules of a
run's end (`session_end.py`) are imported while the program runs.
"""
