"""Memory traffic of each kernel, counted exactly, against the committed table."""
