"""The service: real processes, killed and started again."""
