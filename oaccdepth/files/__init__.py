"""What readers and writers share: output that appears whole or not at all, and PFM."""
