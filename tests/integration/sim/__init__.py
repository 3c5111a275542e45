"""The fake agent and its profiles."""
