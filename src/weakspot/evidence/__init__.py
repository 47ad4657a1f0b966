"""A Run as evidence for a safety case: claims, the digests of what supports them, thresholds, assumptions, limits."""

from weakspot.evidence.bundle import Bundle, write_bundle
from weakspot.evidence.case import build_case
from weakspot.evidence.verifying import verify_bundle

__all__ = ["Bundle", "build_case", "verify_bundle", "write_bundle"]
