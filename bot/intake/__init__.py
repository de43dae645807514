"""From what a person typed to the runs they mean, each reading with its reason."""
