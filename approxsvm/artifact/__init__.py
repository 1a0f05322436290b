"""The bytes of an .asvm file (models/FORMAT.md): layout, writer, and what sections hold."""
