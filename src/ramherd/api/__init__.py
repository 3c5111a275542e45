"""The API of the service: a process of its own that uses the store, and not the supervisor."""
