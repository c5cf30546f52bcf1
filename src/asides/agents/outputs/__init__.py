"""Answers of a given form: what is wanted, which way a model is brought to it, and how it is read from a reply. Pure.

    form = wanted(Weather)                    what is wanted, once per run
    way = way_for(form, prompt, target)       native, tool or instructed
    dressed(prompt, form, way)                the prompt of each step
    read(reply, form, way).value              the answer, or Misfit for the model, or NoAnswer for people

Not here: the loop that asks again (flows/agent).
"""
