"""What a run costs: its time, the bill at each class of provider, owning against renting, cards ranked by cost."""
