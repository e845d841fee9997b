"""Syndication: publications at destinations. The decisions are in the domain; this package calls the targets."""
