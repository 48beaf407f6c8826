"""What is learnt: the networks, their weights and their export."""
