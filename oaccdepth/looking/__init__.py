"""Pictures, pages and animations to look at."""
