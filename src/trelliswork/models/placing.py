"""Models on a device: networks are moved there, others compute on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named

if TYPE_CHECKING:
    from trelliswork.models.base import Model


def place(model: Model, wanted: str) -> str:
    """Move the networks of a model, or of an ensemble, to the device that is wanted; the device."""
    members = getattr(model, "taggers", None) or getattr(model, "members", None)
    parts = members if isinstance(members, list) else [model]
    networks: list[Any] = [each for each in parts if hasattr(each, "state_dict")]
    if not networks:
        if wanted not in ("auto", "cpu"):
            kind = type(model).__name__
            raise TrellisworkError(f"--device {wanted} is for networks, and a {kind} computes on the CPU; leave it out")
        return "cpu"
    alone = next((type(each).__name__ for each in networks if each.CPU_ONLY), "")
    device: str = named("trelliswork.runtime.devices:device_for")(wanted, on_cpu_alone=alone)  # needs torch
    for each in networks:
        each.to(device)
    return device
