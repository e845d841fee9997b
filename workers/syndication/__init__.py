"""Syndication: what is published at destinations. The decisions are in the domain; here is what reaches the targets."""
