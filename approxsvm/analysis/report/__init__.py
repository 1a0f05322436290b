"""Reports on the speed, accuracy and size of compiled models, as text and as a page."""
