"""Other estimators' numbers for the measured rows, made by themselves in environments of their own."""
