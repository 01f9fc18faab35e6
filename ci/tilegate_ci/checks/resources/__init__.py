"""What nvcc says each kernel takes, against the committed table."""
