"""`ramherd.Client`: a script's access to the service."""
