"""Shared code of the doors for other libraries' users. What they import stands one level up, as `asides.ui`."""
