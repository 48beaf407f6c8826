"""Results, masks and light fields -> files."""
