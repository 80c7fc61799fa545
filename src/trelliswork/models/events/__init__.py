"""Models of who did what to whom: entities, triggers of events and the roles of entities in them."""
