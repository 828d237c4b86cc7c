"""Routers behind one seam."""
