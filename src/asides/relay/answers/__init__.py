"""Answers to requests that ask for no reply: models, counts of tokens, stored responses."""
