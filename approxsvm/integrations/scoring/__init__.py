"""Files of any size: found, read in batches, scored, written under a temporary name and renamed."""
