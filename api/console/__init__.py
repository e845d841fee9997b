"""The web console: its built files, which every browser on the network may load. What it shows comes from the API."""
