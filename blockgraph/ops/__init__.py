"""The ops, one file per family. Defining a class registers it; nothing is listed by hand."""
