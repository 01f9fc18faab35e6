"""Shared by all: files and their models, names of benchmarks, processes, git, progress."""
