"""Facts the estimator stands on: models, names, cards and quantisation formats, each with its source."""
