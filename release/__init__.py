"""Tools for a release; not part of the package."""
