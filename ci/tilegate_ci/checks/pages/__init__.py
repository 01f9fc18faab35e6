"""The blocks and the pictures of the READMEs, made from what is committed."""
