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
from weakspot.slices.gains import expected_errors, likelihood_gain
from weakspot.slices.labels import doubtful_labels
from weakspot.slices.regions import ErrorRegion, View, error_regions
from weakspot.slices.search import SliceSearch, find_rules
from weakspot.slices.study import ErrorRate, ErrorSlice, SliceData, ranked_slices

__all__ = [
    "ErrorRate",
    "ErrorRegion",
    "ErrorSlice",
    "SliceCondition",
    "SliceData",
    "SliceRule",
    "SliceSearch",
    "Trait",
    "TraitContrast",
    "View",
    "candidate_conditions",
    "chance_corrected_agreement",
    "contrasts",
    "doubtful_labels",
    "error_regions",
    "excess_p_value",
    "expected_errors",
    "find_rules",
    "first_half",
    "grouped_p_value",
    "holm",
    "likelihood_gain",
    "ranked_slices",
]
