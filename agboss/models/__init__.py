"""Chat models behind one seam."""
