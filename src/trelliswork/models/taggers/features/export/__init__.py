"""Models over features for programs without this library: CRFsuite's file, or JSON and a Python file."""

from __future__ import annotations

from trelliswork.models.taggers.features.export.export import check_python, export_crfsuite, export_python

__all__ = ["check_python", "export_crfsuite", "export_python"]
