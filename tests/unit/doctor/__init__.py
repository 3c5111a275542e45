"""The doctor: each check fires where it should, and is quiet on a healthy machine."""
