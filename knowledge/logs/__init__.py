"""From a pasted or attached log to its numbers, its phase and the lines that matter."""
