"""``Memory`` inside other frameworks: their agent runs, our store keeps everything, their model sees our view.

Import the module of your framework; each needs an extra of its own.
"""
