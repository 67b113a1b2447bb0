"""What the conformance checks are given: traits to score."""

from . import HedgingTrait

OPTIONS = {"hedging": {"traits": [HedgingTrait(name="Certain"), HedgingTrait(name="Fairly certain", most=2)]}}
