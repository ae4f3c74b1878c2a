"""What tools/drift.py compares: `facts` of ours with those of other `sources`, less those in known.toml."""
