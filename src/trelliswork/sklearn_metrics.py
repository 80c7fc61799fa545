"""The earlier name of `trelliswork.sklearn.metrics`."""

from trelliswork.sklearn.metrics import *  # noqa: F403
