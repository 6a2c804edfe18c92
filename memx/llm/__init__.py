"""The one client to language models: gate, retries, cache, counting and the tolerant reading of replies.

``models.Models`` is what a run builds once; everything that asks a model is given an ``LLM`` by it.
"""
