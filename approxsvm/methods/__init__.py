"""Methods of compiled models, one file for each purpose."""
