"""Reads the facts. Every reader takes a Host, so that tests can use a made-up root."""
