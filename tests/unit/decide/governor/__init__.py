"""Rules of the governor, one by one and for any scene."""
