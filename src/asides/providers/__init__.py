"""Data: who, where, with which key, with which quirks. The only place that knows providers by name."""
