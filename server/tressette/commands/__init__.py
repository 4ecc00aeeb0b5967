"""The command line: one module for each command, loaded only when that command is used."""
