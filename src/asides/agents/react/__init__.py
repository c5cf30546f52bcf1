"""ReAct as a text dialect, for models that cannot call tools: a prompt is dressed, its reply translated back.

Not here: who turns it on (the agent, when it is asked to), and how often a model is told to keep to the form.

    prompt = dressed(prompt, target)           tools as instructions, the history as text
    translator = Translator(tools)             one for each reply: `feed` events, get events
    words = hint(reply, tools)                 what is wrong with the form; None when nothing is
    message = correction(words)                what the model is told then
"""
