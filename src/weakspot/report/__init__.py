"""A Run as one offline HTML page."""

from weakspot.report.html import render, write_report

__all__ = ["render", "write_report"]
