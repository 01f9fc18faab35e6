"""What all share: files and their models, names of benchmarks, processes, git, progress."""
