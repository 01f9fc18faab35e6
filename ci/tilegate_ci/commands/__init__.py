"""The commands of ci/gate, one module each."""
