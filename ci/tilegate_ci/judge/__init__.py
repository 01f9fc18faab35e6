"""Decides what a measurement means: screen, confirmation, baselines, waivers."""
