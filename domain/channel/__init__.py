"""The JSON documents that configure channels, flows and infrastructure profiles: their schemas, and functions that read them.

The texts are stored as they were sent; the models only check and read them.
"""
