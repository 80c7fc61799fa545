"""What taggers and parsers that are networks share.

Settings: `config` (inputs and encoder), `parts` (one line for each encoder), `preset` (what a name stands for).
From words to numbers: `features`, `word_ngrams`, `template_features`, `remembered`.
The network: `building` (from settings to modules), `word_network` (the base class), `pretraining`, `description`.
Around it: `recipe` (how `trelliswork train` makes it), `stored_network` and `size_guard` (its folder).
"""
