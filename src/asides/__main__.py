"""`python -m asides`: the command line, without a script on the path."""

from asides.cli.app import main

if __name__ == "__main__":
    raise SystemExit(main())
