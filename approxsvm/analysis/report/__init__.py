"""Reports: what a compiled model gives its users, as text and as a page."""
