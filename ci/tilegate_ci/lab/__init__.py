"""`ci/gate lab …`, for maintainers: error rates of the gate, mutation testing, autotuning."""
