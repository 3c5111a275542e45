"""The durable truth: herds, jobs, runs, events, samples and pens, in SQLite."""
