"""`ramherd up`: one supervisor for all herds that are submitted, whoever dies meanwhile."""
