"""Times Sgemm's configurations on a GPU."""
