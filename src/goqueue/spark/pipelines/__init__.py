"""Pipelines: YAML files that name a source, steps, and the topics and tables where the rows go.

Reading and checking a file needs no Spark. One long-lived driver then runs all pipelines of a folder.
"""
