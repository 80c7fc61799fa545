"""Transducers as acceptors of pairs: input and output become one symbol, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata.structure import Machine


def encode(machine: Machine) -> tuple[Machine, Array]:
    """Return an acceptor of numbered pairs, and the pairs [numbers, 2]; number 0 is ε:ε."""
    both = np.stack([machine.input, machine.output], 1)
    pairs, number = np.unique(np.concatenate([[[0, 0]], both]), axis=0, return_inverse=True)
    number = number.reshape(-1)[1:]
    return replace(machine, input=number, output=number), pairs


def decode(machine: Machine, pairs: Array) -> Machine:
    """Return the way back from `encode`."""
    return replace(machine, input=pairs[machine.input, 0], output=pairs[machine.output, 1])
