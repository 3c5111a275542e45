"""Mutation tests of decide/: `make mutants`."""
