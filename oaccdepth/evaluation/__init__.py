"""Disparity maps and ground truth -> scores."""
