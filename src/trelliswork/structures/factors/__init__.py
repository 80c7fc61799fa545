"""Factor graphs: discrete variables, factors over any of them; exact by junction tree, and three approximations."""
