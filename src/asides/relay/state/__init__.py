"""Reasoning state between turns: envelopes that a caller carries, and records that the vault keeps.

- `caller_state`: the state of one request: put back, carried and recorded
- `carry_state`, `restore_state`: outbound and inbound
- `turn_state`, `rebuild_turn`: the state of one turn, and the turn that is rebuilt with it
- `envelope`, `relay_keys`: the encrypted text that clients carry, and its keys
- `vault_records`: the records of the vault
- `inlined_thinking`: thinking that a caller put into text
- `sealed_summary`: summaries in `compaction` items
- `thinking_origins`: which model made which thinking
- `account_ids`, `response_owners`: ids of things that a provider stores, and the tenants that own them
- `clean_history`: a saved history without envelopes
"""
