"""Paper 001's experiments on excessive risk: simulated people, public data, and which claims hold."""
