"""Which planted facts a model can still see, or fetch, after long threads."""
