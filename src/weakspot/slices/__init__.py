"""Rules that hold for unusually many errors: found on one half of the inputs, confirmed on the other. Free of torch."""

from weakspot.slices.candidates import candidate_conditions
from weakspot.slices.conditions import SliceCondition, SliceRule, Trait
from weakspot.slices.confirmation import (
    chance_corrected_agreement,
    excess_p_value,
    first_half,
    grouped_p_value,
    holm,
)
from weakspot.slices.contrast import TraitContrast, contrasts
from weakspot.slices.search import SliceSearch, expected_errors, find_rules, likelihood_gain
from weakspot.slices.study import ErrorRate, ErrorSlice, SliceData, ranked_slices

__all__ = [
    "ErrorRate",
    "ErrorSlice",
    "SliceCondition",
    "SliceData",
    "SliceRule",
    "SliceSearch",
    "Trait",
    "TraitContrast",
    "candidate_conditions",
    "chance_corrected_agreement",
    "contrasts",
    "excess_p_value",
    "expected_errors",
    "find_rules",
    "first_half",
    "grouped_p_value",
    "holm",
    "likelihood_gain",
    "ranked_slices",
]
