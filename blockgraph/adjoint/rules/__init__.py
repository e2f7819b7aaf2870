"""The gradients of ops, one file per family: a module here registers its rules when it is imported."""
