"""The gateway: an HTTP service over the relay, with a page to see models think. `asides serve` runs it."""
