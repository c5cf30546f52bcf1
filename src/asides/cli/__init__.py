"""The command line: `asides ask`, `chat`, `decode` … The answer on stdout, everything else on stderr.

Not here: anything that a library user could not do as well; the command line only reads arguments and prints.
"""
