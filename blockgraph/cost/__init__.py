"""What a graph costs, read off its symbolic shapes: nothing is allocated and no stack is written out."""
