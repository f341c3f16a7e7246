"""What all nodes must agree on: topics, their settings, leader epochs, producer ids."""
