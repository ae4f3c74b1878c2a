"""What tools/bench.py measures, with what, on which files."""
