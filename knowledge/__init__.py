"""What is known about running out of GPU memory: causes, how to confirm each, and what mends it."""
