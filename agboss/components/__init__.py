"""What a user declares: decorators, settings and the records they leave."""
