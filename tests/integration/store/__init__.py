"""The store and the ledger on real SQLite."""
