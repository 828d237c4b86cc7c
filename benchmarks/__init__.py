"""What is measured by hand, with commands in README.md."""
