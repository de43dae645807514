"""A training or inference step as a timeline of allocations, traced from operations and evaluated in closed form."""
