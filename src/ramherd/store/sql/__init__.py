"""All SQL, one module for each subject.

The statements are the same for SQLite and PostgreSQL, except `migrations` and `ledger`, which are
for SQLite. Values are `?` or `:name`. A PostgreSQL schema adds parts that are built into SQLite:
the functions `json_extract`, `json_set` and `json_type`, and the column `samples.rowid`.
"""
