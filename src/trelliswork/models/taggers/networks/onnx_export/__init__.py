"""Networks as ONNX graphs, for programs without this library."""

from __future__ import annotations

from trelliswork.models.taggers.networks.onnx_export.export import check_export, export_onnx

__all__ = ["check_export", "export_onnx"]
