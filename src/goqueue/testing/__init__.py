"""What the broker is tried with: a simulated world, and simulations that run on it."""
