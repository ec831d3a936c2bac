"""The command line: one module for each command, and nothing that another layer would need."""
