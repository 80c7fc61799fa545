"""Annotation in bulk: many files in, as many files out, by several processes, surviving what goes wrong.

shards.py     which files there are, what each becomes, which are done
shard_work.py one file: its answers, and its bad records in a file of their own
local.py      processes on this machine that share one model
ray_engine.py actors on a Ray cluster
"""
