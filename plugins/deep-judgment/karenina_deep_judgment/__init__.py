"""Deep judgment: what the judge extracts rests on quotations that are really there."""
