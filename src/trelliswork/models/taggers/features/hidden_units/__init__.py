"""Linear-chain CRFs with binary hidden units between the attributes of a token and its label."""
