"""What the doctor thinks of the facts: each function takes facts and gives findings."""
