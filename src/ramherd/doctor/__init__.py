"""`ramherd doctor`: reads a machine, judges what it finds, and proposes fixes."""
