"""What the doctor reads. Every reader takes a Host, so that a made-up root can stand in."""
