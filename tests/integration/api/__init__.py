"""The API: the real process on a real store, without a supervisor."""
