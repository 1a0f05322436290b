"""Layout, writer and views of .asvm files (models/FORMAT.md)."""
