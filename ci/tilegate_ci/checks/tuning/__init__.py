"""Measured times of Sgemm's configurations, and the table of choices made from them."""
