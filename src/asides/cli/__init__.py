"""The command line: `asides ask`, `chat`, `decode` … The answer goes to stdout, everything else to stderr.

One file per command, plus what they share. It only reads arguments and prints; the library does the work.
"""
