"""What GPUs cost to rent and to buy: offers with their dates and sources, where they come from, and their history."""
