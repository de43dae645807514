"""A deterministic estimate of the GPU memory that a training or inference run needs."""
