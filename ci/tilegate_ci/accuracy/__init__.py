"""How accurate a rung is beside cuBLAS, on inputs that are hard for short arithmetic."""
