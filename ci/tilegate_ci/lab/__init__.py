"""For maintainers, `ci/gate lab …`: how often the gate is wrong, which faults no test sees, what
Sgemm chooses."""
