"""The small process that is parent and subreaper of the runs. Standard library only."""
