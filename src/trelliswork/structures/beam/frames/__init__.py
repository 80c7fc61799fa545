"""Frame-semantic parsing as a transition system: frames are evoked by phrases and joined by roles.

`graph` is what is built, `actions` the decisions, `oracle` leads from a graph to actions, `system` has batched states.
"""

from trelliswork.structures.beam.frames.actions import Action, Actions, Kind
from trelliswork.structures.beam.frames.graph import FrameGraph, Mention, Slot
from trelliswork.structures.beam.frames.oracle import actions_of
from trelliswork.structures.beam.frames.system import FrameState, FrameSystem

__all__ = ["Action", "Actions", "FrameGraph", "FrameState", "FrameSystem", "Kind", "Mention", "Slot", "actions_of"]
