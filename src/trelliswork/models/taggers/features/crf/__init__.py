"""Linear-chain CRFs over sparse attributes."""
