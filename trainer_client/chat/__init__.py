"""A policy's turns as text and as tokens, for the learner and for the trainers of others: one renderer for all.

Needs what a tokenizer of transformers brings (jinja2), and is not imported by the client.
"""
