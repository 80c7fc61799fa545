"""Dependency trees: what parsers of them share, and the graph-based one."""
