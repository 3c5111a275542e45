"""What is read of processes that may be strays."""
