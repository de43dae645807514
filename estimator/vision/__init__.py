"""Image towers of vision-language models: what they are made of, and how many tokens an image becomes."""
