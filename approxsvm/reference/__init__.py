"""The reference in obvious float64, which judges everything fast; imports models and rows, nothing that it judges."""
