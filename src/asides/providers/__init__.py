"""Provider data: addresses, keys, quirks and model rules. Only this folder knows providers by name."""
