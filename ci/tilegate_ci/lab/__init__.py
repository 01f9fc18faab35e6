"""For maintainers: how often the gate is wrong, which faults no test sees, what Sgemm chooses."""
