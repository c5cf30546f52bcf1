"""The benchmark of asides: the same bytes through asides, the bare HTTP clients and the libraries people use today.

Not part of the package and not imported by the tests. Start at `README.md`; run with `python -m bench.compare`.
"""
