"""Dependency trees that are built decision by decision."""
