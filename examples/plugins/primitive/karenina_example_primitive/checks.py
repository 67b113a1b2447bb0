"""What the conformance checks are given: sequences that can be compared, which random texts are not."""

OPTIONS = {"DnaMatch": {"pairs": [("5'-ACGT-3'", "acgt"), ("AAC", "GTT"), ("AAC", "CCC")]}}
