"""Provider data: addresses, keys, quirks and model rules. Only this folder knows providers by name.

- `table`, `models/`: one row for each provider, and the rules of its models
- `provider`, `quirks`: the types of a row, and `Target`
- `find`, `settle`: the target of a model string, and the facts that hold for one call
- `endpoint`: the choice between the dialects of a host
- `user_rows`: rows of users
- `switches/`: how each host is asked to think
- `refusals`, `error_bodies`, `provider_errors`: errors of servers: their kind, their messages, and ours
- `learned_rules`: what refusals taught
- `credentials`, `key_file`, `aws_signing`, `cloud_hints`: keys and signatures
- `model_names`, `unknown_names`, `trace_names`: names to choose from, names that are not known, names in traces
- `detail_formats`: which models read which `reasoning_details`
- `batch_facts`: providers that answer batches
- `stage_switch`: ASIDES_STAGE
"""
