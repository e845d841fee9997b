"""The web console: its built files, which every browser on the network may load. Its data come from the API."""
