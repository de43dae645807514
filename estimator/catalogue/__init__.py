"""Facts the estimator stands on: models, names, cards and quantisation formats, each with its source."""

from estimator.catalogue.formats import WeightFormat, weight_format
from estimator.catalogue.gpu_match import GpuMatch
from estimator.catalogue.gpus import all_gpus, find_gpu
from estimator.catalogue.models import ModelMatch, find_model, model_names, total_parameters

__all__ = [
    "GpuMatch",
    "ModelMatch",
    "WeightFormat",
    "all_gpus",
    "find_gpu",
    "find_model",
    "model_names",
    "total_parameters",
    "weight_format",
]
