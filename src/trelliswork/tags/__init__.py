"""Tag schemes such as IOB2 and IOBES: which tags may follow which, and conversion between tags and spans."""
