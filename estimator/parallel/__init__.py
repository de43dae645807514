"""Many cards: what one rank stores, gathers, keeps and sends during a step."""
