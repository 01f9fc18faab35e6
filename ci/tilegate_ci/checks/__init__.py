"""Committed tables, compared exactly, and the pages and pictures made from them."""
