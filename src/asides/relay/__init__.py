"""The relay: a request in any dialect in, any provider out, the reply in the caller's dialect. Pure, like all flows.

- `relay`, `relay_config`: the entry, and its settings
- `relay_request`: the request of a caller, the head of its response, and the outcome
- `endpoints`, `read_request_body`: what a request asks for; its body
- `routes`, `find_calls`, `target_calls`, `known_calls`: from the name of a model to a call for each target
- `known_models`, `listed_models`, `allowed_models`, `client_names`: the models that a caller sees and may ask
- `request_options`: the options of a request
- `relayed_reply`, `relayed_exchange`, `written_exchange`: a request for a reply: its targets in order, one exchange,
  and replies that the relay writes
- `find_changes`, `plain_requests`, `ambiguous_names`: what has to change between a caller and a target
- `forward`, `splice_body`, `whole_events`: bytes that pass unchanged
- `compacted_exchange`: compaction where the provider has none
- `pings`: signs of life while a provider is silent
- `client_errors`, `error_response`: errors in the dialect of the caller
- `metered_use`: the limits of a caller, and what it used
- `observer`: what an inspector sees
- `steps`: the steps that only the relay asks for
- `answers/`, `state/`, `streams/`, `translate/`, `vault/`: other answers, reasoning state, drivers, other dialects,
  records
"""
