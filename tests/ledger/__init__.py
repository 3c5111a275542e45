"""Leases between processes."""
