"""Jobs as users write them: one schema of keys, and the readers of job files."""
