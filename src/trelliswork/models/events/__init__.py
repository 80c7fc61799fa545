"""Models of who did what to whom: entities, triggers of events and the roles of entities in them.

memory_events.py, factor_events.py   MemoryEvents (left to right), FactorEvents (all together by AD3)
event_network.py, inputs.py          what both share: rows of sentences, names, a CRF of entities, answers
frame_parser.py                      FrameParser, and the graphs that it builds
config.py                            settings
"""
