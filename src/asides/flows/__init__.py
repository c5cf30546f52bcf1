"""Flows: generators that decide what to do next and ask for I/O. No sockets, no clock, no await.

- `steps`: the steps that a flow may ask for; a driver carries out each one
- `call`, `build_call`: one call as a value, and how it is made of the arguments of `ask`
- `exchange`: one request and its reply: plan, encode, open, retry, decode, fold
- `retry`, `heal/`: after a failure: when to try again, and how to repair a refused request
- `recover`, `choose_recovery`: a reply without an answer: what to try, and the loop that tries it
- `fallback`: several models in order
- `output_format`: typed answers, and tools that are called in text
- `agent`, `tool_turn`, `run_config`: the loop of an agent, the tool calls of one reply, the settings of a run
- `many`, `pace`: many questions: their order, their end and their speed
- `compact_history`: let a provider compact a history
- `cost_bounds`: the most that a request can cost
- `list_models`, `fetch_body`: the models of a provider; a response that is not a reply
- `offline`: `decode`, `read` and `explain`, which send nothing
- `reply_fields`: a reply or an error as JSON fields
- `probe/`: how an unknown server thinks
"""
