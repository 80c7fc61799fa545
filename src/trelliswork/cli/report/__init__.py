"""The report: one HTML page with its pictures inside, and the pictures by themselves."""

from __future__ import annotations

from trelliswork.cli.report.page import report_page
from trelliswork.cli.report.trellis import standalone_trellis, trellis_picture

__all__ = ["report_page", "standalone_trellis", "trellis_picture"]
