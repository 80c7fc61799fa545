"""Networks that score edit steps: what meets in a cell, what is done there, what is written. Start with `math.md`."""
