"""The execution plan: the same numbers as the plain interpreter, as fast as the matrix products allow.

From the unrolled graph and the sizes of a call: `steps` (what runs), `views` (what only looks at memory), `stages`
(what runs together, by `rows`), `layout` and `memory` (where values lie), `segments` (the calls), `workspace` (memory
and calls of a run), `planner` (what is kept for the next call). `kernel` tells how an op takes part.
"""
