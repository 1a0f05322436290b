"""What people see of a compiled model."""
