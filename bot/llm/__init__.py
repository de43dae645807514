"""A language model where the grammar is unsure: it chooses tools and arguments, never a number. Off unless set."""
