"""The API of the service: a process of its own that knows the store, and not the supervisor."""
