"""Settings of a run for embedders."""

from __future__ import annotations

from attrs import frozen

from karenina_core.values.sections import Section, words

EMBEDDING_MODEL = "all-MiniLM-L6-v2"


@frozen(kw_only=True, slots=False)
class EmbedderSettings(Section):
    """What compares the meaning of texts, for the embedding check and for templates."""

    embedding_check_embedder: str = words("minilm")
    """The name of the installed embedder that turns texts into vectors."""
    embedding_check_model: str = words(EMBEDDING_MODEL, variable="EMBEDDING_CHECK_MODEL")
    """The embedder's model; `EMBEDDING_CHECK_MODEL` in the environment if it is not given."""
