"""Makes `tests` a package, so that tests share their sample tables by name: `from tests.op_samples import ...`."""
