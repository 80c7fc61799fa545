"""Models of who did what to whom: entities, triggers of events and the roles of entities in them.

- `event_network`: what models of events share; `inputs` and `inventory` are what it reads, `extracted` what it finds
- `memory_events`: `MemoryEvents`, decisions from left to right; `ranked` has the best of several ways
- `factor_events`: `FactorEvents`, a factor graph of each record; `judged` leads from the graph to events
- `frame_parser`: `FrameParser`, graphs of frames built action by action; `framed` makes answers of them
- `config`, `frame_config`, `presets`, `recipe`: settings, and training by name
"""
