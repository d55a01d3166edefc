"""Explicit transformer weights that recall facts."""
