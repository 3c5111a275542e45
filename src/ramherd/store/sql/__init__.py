"""All SQL, one module for each subject.

The statements suit SQLite and PostgreSQL, except the migrations, the JSON functions and `rowid`.
Values are `?` or `:name`.
"""
