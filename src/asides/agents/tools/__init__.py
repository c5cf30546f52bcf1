"""Tools that an agent can run: typed functions, or any `Runnable` object. Pure."""
