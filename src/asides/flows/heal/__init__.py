"""Repairs a refused request with the smallest change: what it teaches about the target makes the next request.

- `refused_request`: the request with what its refusal names, and the changes that may repair it
- `refused_thinking`: repairs of the amount and the form of thinking
- `refused_settings`: repairs of the other settings
- `replayed_state`: repairs of what goes back of earlier turns
- `repair`: tries the repairs in turn, and remembers what helped and what replies report
"""
