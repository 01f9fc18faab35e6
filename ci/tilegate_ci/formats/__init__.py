"""One reader per file format; measurements become a Process or a Run."""
