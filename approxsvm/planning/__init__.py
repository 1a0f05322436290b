"""What to expand about which centers."""
