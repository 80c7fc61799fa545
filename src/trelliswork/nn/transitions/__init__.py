"""Networks over the states of transition systems: units that read a state and earlier ones, and their kernels.

unit.py       the transition-based recurrent unit (TBRU), and its run through a transition system
parsing.py, frames.py       units of a dependency parser and of a frame parser
states.py        fast search and losses of feed-forward units on the CPU,
                            over kernels.py, beam_kernels.py and path_kernels.py

Kong, Alberti, Andor, Bogatyy and Weiss (2017), DRAGNN: A transition-based framework for dynamically connected neural
networks.
"""

from trelliswork.nn.transitions.frames import FrameUnit
from trelliswork.nn.transitions.parsing import ParsingUnit, TaggingUnit
from trelliswork.nn.transitions.unit import TBRU, RecurrentSystem, Trajectory, unroll

__all__ = ["TBRU", "FrameUnit", "ParsingUnit", "RecurrentSystem", "TaggingUnit", "Trajectory", "unroll"]
