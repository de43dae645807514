"""From facts to the fields of a run: what the tools' keys mean together."""
