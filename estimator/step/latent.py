"""Multi-head latent attention (DeepSeek): compressed queries and keys/values, one shared rotary key for all heads."""

from collections.abc import Sequence

from estimator.step import ops
from estimator.step.architecture_facts import fact
from estimator.step.attention import eager, rotate, sdpa
from estimator.step.model import Layer, Model
from estimator.step.tape import FULL, Tensor
