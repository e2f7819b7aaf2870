"""A model run step by step, with what earlier positions left behind, derived from its graph.

`timing` tells of every value what it has to do with time, `restrict` how an op is run on some rows of its operands and
why that is right, `derive` what each step computes and keeps, `bind` makes a flat list of calls of that, and `decoder`
is what users hold.
"""
