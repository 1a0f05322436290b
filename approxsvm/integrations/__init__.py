"""Tables in, tables out: Arrow batches, files of any size, and the engines that hold data frames."""
