"""A drop-in for sklearn-crfsuite 0.5: `CRF`, `metrics` and `scorers`, with exact answers beyond it.

>>> import trelliswork.sklearn as sklearn_crfsuite            # doctest: +SKIP
>>> from trelliswork.sklearn import CRF, metrics, scorers      # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trelliswork.sklearn.estimator import CRF

if TYPE_CHECKING:
    from trelliswork.sklearn import metrics, scorers

__all__ = ["CRF", "metrics", "scorers"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")  # scikit-learn's scores take longer to import than the estimator
