"""What the configuration texts of channels, flows and infrastructure profiles must hold, and what can be read from them.

Sources: document 2 ("Infrastructure Profile"), document 3 ("Flow"), decisions.md ("Channel", "Infrastructure and provisioning").
The texts themselves are kept as they were sent; the models here only check them and read them.
"""
