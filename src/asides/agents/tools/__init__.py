"""Tools that can be run: a typed function, or anything else that is `Runnable`. Validation, results, approvals: pure.

Not here: who runs them and when (flows/agent, network), and how a provider spells a tool (dialects).
"""
