"""The common parts of models that are networks.

Settings: `config` (inputs and encoder, vectors, device), `parts` (one line for each encoder).
From words to numbers: `features`, `sparse_features` (n-grams and templates).
The network: `building` (from settings to modules, pre-training), `word_network` (the base class).
What it is and why it answers so: `description`, `attribution`.
Around it: `recipe` (how `trelliswork train` makes it), `stored_network` (its folder).
"""
