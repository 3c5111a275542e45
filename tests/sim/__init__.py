"""The governor's own code on simulated machines."""
