"""The public interface for other packages: workflows, targets and encoders. See docs/reference/plugins.md.

These names and their signatures stay the same within a major version. Everything else of the product may change at any time.
"""
