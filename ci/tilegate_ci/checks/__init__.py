"""What is committed and compared exactly: a table, or the pages and pictures made from it."""
