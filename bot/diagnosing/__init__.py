"""From a pasted log to a Diagnosis: the run read, estimated and held against what the log says."""
