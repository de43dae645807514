"""The daily price digest: who gets it when, what it says, and that each gets it once."""
