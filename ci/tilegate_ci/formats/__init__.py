"""Files, one reader each: what others and we measured becomes a process or a run."""
