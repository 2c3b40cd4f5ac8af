"""Fuzzers of the public doors: malformed arguments, mutated files, malformed commands. Not installed."""
