"""Diagnose a history in the format of any library, and repair it in place: `diagnose(history, model) → Diagnosis`."""
