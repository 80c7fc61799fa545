"""Structured distributions: torch.distributions over tag sequences, segmentations, trees and more."""

from torch.distributions import kl_divergence

from trelliswork.distributions import divergence  # noqa: F401 - registers kl_divergence
from trelliswork.distributions.base import StructuredDistribution
from trelliswork.distributions.linear_chain import LinearChain

__all__ = ["LinearChain", "StructuredDistribution", "kl_divergence"]
