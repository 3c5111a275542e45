"""`ramherd.Client`: the service from a script."""
