"""What scripts/update-docs is made of: marks in documents, the two kinds of blocks between them, and names."""
