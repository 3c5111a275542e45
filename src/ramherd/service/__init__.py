"""`ramherd up`: one supervisor for all submitted herds, even if parts of it die."""
