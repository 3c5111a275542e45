"""Settings: one reader for every program (defaults < file < environment < flags)."""
