"""How often the gate is wrong: recordings, replay, simulation."""
