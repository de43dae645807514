"""From an Answer to what a person reads."""
