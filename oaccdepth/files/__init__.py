"""Shared by readers and writers: atomic output, safe opening, checked values and PFM."""
