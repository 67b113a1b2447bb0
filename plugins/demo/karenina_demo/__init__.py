"""`karenina demo`: the main job of karenina on a benchmark of its own, with models that were recorded."""
