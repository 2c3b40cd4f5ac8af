"""Paper 004's experiments on private fair classification, and data that other studies use too."""
