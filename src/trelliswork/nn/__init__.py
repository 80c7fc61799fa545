"""Layers: scores in, structured distributions and losses out."""

from trelliswork.nn.crf import CRF

__all__ = ["CRF"]
