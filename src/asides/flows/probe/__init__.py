"""Finds out how an unknown server thinks: sends a few small requests, reads the answers, and writes a row.

- `plan_probe`: before the probe: its options, and a preview of its requests
- `run_probe`: the flow: which request comes next
- `trials`, `trial_sender`: the requests, and the part of the flow that sends them
- `observe`: what one answer shows
- `repair_request`, `refused_switches`: what a refusal says: the next form of the request, the switches and efforts it
  names
- `find_switch`, `find_tags`: the switch that turns thinking on or off; thinking inside text
- `knowledge`: what the probe knows so far
- `infer_row`, `list_findings`: the row and the findings that follow from it
- `probe_report`, `write_row`: the report, and the row as TOML and as Python
"""
