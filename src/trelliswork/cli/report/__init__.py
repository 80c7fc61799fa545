"""The report: one HTML page with its pictures inside."""

from __future__ import annotations

from trelliswork.cli.report.page import report_page

__all__ = ["report_page"]
