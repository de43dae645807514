"""Training stages: rows in a forward, who gives reference log-probabilities, and the models that stand beside."""
