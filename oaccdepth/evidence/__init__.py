"""What the views say about a disparity."""
