"""Our own reader, fuzzed: what is asked of each file, and where the files come from.

exercise    what must be true of a file, whatever is in it
mutants     labelled mutants of seeded files, many, over several runs
generated   files that hypothesis makes
planted     copies of the package with a fault each, which must be found
"""
