"""What scripts/update-docs is made of: marks in documents, the three kinds of blocks between them, and names."""
