"""Reading the machine. `parse_` takes text, `read_` opens a file below a root that tests set."""
