"""Scenes with ground truth -> weights."""
