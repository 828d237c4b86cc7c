"""What authors of stores and strategies test with. Import the module that you need; pytest is imported only there."""
