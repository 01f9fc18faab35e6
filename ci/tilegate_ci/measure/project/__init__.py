"""Other people's benchmarks: builds base and head by commands, and measures them in pairs."""
