"""What each configuration of Sgemm took on a GPU, and the table of choices that follows."""
