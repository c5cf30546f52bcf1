"""Pure functions on histories (tuples of messages): plan what goes back, trim, redact, export, save.

turns: which messages form a turn, which result belongs to which call, unique ids. plan: the named passes that make a
request, with replay (what goes back), fit (messages), check (settings) and effort_changes. cache_break: where a prompt
cache ends. finish: the message of a reply. trim, redact, summary: shorter histories. document: the saved
format. export: formats of other libraries. diagnosis: the doctor.
"""
