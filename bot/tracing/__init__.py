"""The memory tracer: the real training step on fake tensors, every storage followed from allocation to release.

Needs the extra ``vram-bot[trace]``. Only ``trace``, ``plan``, ``guard`` and ``packages`` may be imported before the
guard is loaded: the others import torch.
"""
