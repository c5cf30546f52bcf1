"""Translates a request for another provider, and its reply for the caller.

- `translate_fields`, `field_rules`: the fields of a request, and the table of what happens to each
- `fit_sampling`, `fit_output`: sampling settings and output formats that the target takes
- `foreign_messages`: messages without what only their own provider reads
- `tool_names`, `hosted_tools`: names and kinds of tools; tools that a provider runs
- `call_ids`: ids of calls
- `visible_events`: the events that the caller may see
"""
