"""What other packages may build on: workflows, targets and encoders. See docs/reference/plugins.md.

These names and their signatures stay as they are within a major version. Everything else of the product may change at any time."""
