"""What is known, an entry a file: Markdown with front matter, in English and Chinese."""
