"""One reader per format; each gives entries with their lines and runs nothing."""
