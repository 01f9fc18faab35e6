"""What each configuration of Sgemm takes on a GPU, and the table of choices that follows."""
