"""Files of any size: found, read a batch at a time, scored, written aside and renamed."""
