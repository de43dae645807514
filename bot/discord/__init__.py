"""Everything that speaks with Discord; no other part of the project imports the library."""
