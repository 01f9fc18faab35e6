"""What each kernel does to memory, counted exactly, against the committed table."""
