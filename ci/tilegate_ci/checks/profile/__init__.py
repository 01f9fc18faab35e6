"""What Nsight Compute says of each rung."""
