"""Nsight Compute's counters of each rung."""
