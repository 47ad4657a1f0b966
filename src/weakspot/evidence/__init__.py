"""A Run as evidence for a safety case: claims, what they rest on with its digests, thresholds, assumptions, limits."""

from weakspot.evidence.bundle import Bundle, verify_bundle, write_bundle
from weakspot.evidence.case import build_case

__all__ = ["Bundle", "build_case", "verify_bundle", "write_bundle"]
