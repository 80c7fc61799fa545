"""Tag schemes such as IOB2 and IOBES: which tags may follow which, from tags to spans and back."""
