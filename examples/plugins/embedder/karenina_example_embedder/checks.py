"""What the conformance checks are given: a model, so that texts are embedded."""

from . import MODEL

OPTIONS = {"trigrams": {"model": MODEL}}
