"""providers/models."""
