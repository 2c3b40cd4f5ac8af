"""Small input and output: arrays with facts, small public tables, files that are written whole or not at all."""
