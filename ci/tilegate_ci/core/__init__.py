"""What every command shares: files, names, the model of a run, verdicts."""
