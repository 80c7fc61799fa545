"""Annotation in bulk: many files in, as many files out, by several processes, surviving what goes wrong.

shards.py     the files of a job; one of them: its answers, and its bad records in a file of their own
local.py      processes on this machine that share one model
ray_engine.py actors on a Ray cluster
"""
