"""The built-in kinds, one file each. Defining a class registers it; nothing is listed by hand."""
