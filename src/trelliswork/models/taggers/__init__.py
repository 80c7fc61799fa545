"""Models whose answer is a tag for each token: networks, feature CRFs, and what both share."""
