"""Builds, runs of the bench binary, and their results."""
