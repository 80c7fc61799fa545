"""Connectionist temporal classification: frames aligned with label strings. Start with `math.md`."""
