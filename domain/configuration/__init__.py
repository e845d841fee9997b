"""The JSON documents that configure channels, flows and infrastructure profiles: their schemas, and what is read from them.

The texts themselves are stored as they were sent; the models only check and read them.
"""
