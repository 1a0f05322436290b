"""What a release is made with; no part of the package."""
