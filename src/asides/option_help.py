"""The options of a call in one line each, for `help()`. It imports nothing, so that `asides.aio` can use it."""

from __future__ import annotations

from collections.abc import Callable

OPTIONS_TEXT = """\
- `system`: the system prompt
- `thinking`: how much to think: "off", "low", "medium", "high" …, a number of tokens, or a `Thinking`
- `reasoning_effort`, `reasoning`: two other forms of `thinking`
- `files`: pictures, PDFs, sounds, videos and text files for the question
- `output`: the type of the answer, or a JSON schema; `reply.output` is its value
- `attempts`: how often the model may correct an answer that does not fit `output`
- `tools`: functions or tools that the model may call
- `tool_choice`: "auto", "none", "required", or the name of a tool
- `parallel_tool_calls`: whether the model may ask for several calls in one reply
- `max_tokens`: the limit of the whole output, thinking included
- `stop`: a text, or several, at which the model stops
- `temperature`, `top_p`, `top_k`, `min_p`: how the model samples the next token
- `presence_penalty`, `frequency_penalty`, `repetition_penalty`: how much the model avoids repetition
- `logit_bias`, `logprobs`, `top_logprobs`: biases for tokens; probabilities to report
- `seed`: the seed of the sampling
- `user`, `metadata`: labels for the provider
- `extra`: fields of the provider's own, merged into the request body last
- `cache`: True, or how long: ask the provider to cache the beginning of the request
- `stream`: for `ask`: receive the reply as a stream; the result is the same
- `base_url`: the address to use instead of the provider's
- `api_key`: the key, or a function that returns it
- `endpoint`: "chat" or "responses", where a provider has both
- `openai_responses_enabled`: use Responses at a custom address too
- `family`: the public name of a model that the address knows by another name
- `tools_max_count`, `tools_max_json_kb`: hard limits on tools: their number, and their size as JSON
- `store`, `stateful`: whether the provider stores this turn; whether to continue from the stored one
- `previous_response_id`, `conversation_id`: the stored response or conversation to continue
- `truncation`, `include`, `reasoning_context`, `reasoning_mode`: fields of the Responses endpoint
- `compaction`: let the provider compact a long history: "provider", or a number of tokens
- `thinking_field`: the response field that carries thinking, where the host has its own
- `tags`, `tag_position`, `starts_inside`: inline tags: which, where they count, and whether the text begins inside
- `heuristics`: read unknown fields that are named like thinking as thinking
- `keep_raw`: keep the received documents for `reply.raw`
- `thinking_encrypted`: include encrypted thinking in `reply.metadata`
- `reply_limits`: how large a reply may grow
- `timeout`: seconds that limit every wait, or a `Timeout`
- `retries`, `max_wait`: attempts after the first; the longest wait between two, in seconds
- `continuations`: how many more requests may continue a long reply
- `recover`: True, or a `RecoverPolicy`: what to try when a reply has no answer
- `on_conflict`: "raise", or "adjust": send the nearest request that the model allows"""

_PROMPT = "- `prompt`: a text, a message, a history, or a list of texts, pictures and files"
_MANY = """- `prompts`: the prompts, read as they can be asked; a generator may be endless
- `concurrency`: how many are asked together
- `on_progress`: a function that gets a `Progress` after each answer"""
_MODEL = "- `model`: provider:model, or several in order; None: that of the settings"
_LIMITS = """- `limits`: how far a run may go: turns, tool calls, tokens, seconds
- `approval`, `approve`: which tool calls need an approval, and the function that gives it
- `tool_timeout`: seconds that one tool call may take
- `parallel`: how many tool calls run together
- `mode`: "react" for models without tool calls of their own"""

ASK_TEXT = f"{_MODEL}\n{_PROMPT}"
EXPLAIN_TEXT = f"{ASK_TEXT}\n- `settings`, `providers`: as for a `Client`"
ASK_MANY_TEXT = f"{_MODEL}\n{_MANY}"
AGENT_TEXT = f"""{_MODEL}
- `client`: the client that sends the requests; the default is one of its own for each run
{_LIMITS}"""
RUN_TEXT = f"""{_PROMPT}
- `conversation`: the conversation that the run continues and adds to
{_LIMITS}"""
RUN_MANY_TEXT = f"{_MANY}\n{_LIMITS}"


def describe_options(*functions: Callable[..., object], first: str = ASK_TEXT) -> None:
    """Add the list of options to the docstrings of functions that take them. `first`: the lines of other arguments."""
    for function in functions:
        if function.__doc__ is not None:  # None: Python runs without docstrings.
            text = f"{function.__doc__}\n\n{first}\n{OPTIONS_TEXT}"
            function.__doc__ = "\n".join(map(str.strip, text.strip().splitlines()))
