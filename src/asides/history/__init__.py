"""Pure functions on histories (tuples of messages): plan what goes back, trim, redact, export, save.

- `turns`: which messages form a turn, which result belongs to which call, unique ids
- `plan`: the named passes that make a request
- `replay`, `fit`, `check`, `effort_changes`: what the passes decide: what goes back, messages, settings, changes of the
  effort
- `cache_break`: where the prompt cache of a provider ends
- `finish`: the message of a reply
- `trim`, `redact`, `summary`: shorter histories
- `document`, `export`: the saved format, and the formats of other libraries
- `doctor/`: what a model would refuse of a history, and its repair
"""
