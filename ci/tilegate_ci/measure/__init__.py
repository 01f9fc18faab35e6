"""Builds, launches the bench binary and records what it measured."""
