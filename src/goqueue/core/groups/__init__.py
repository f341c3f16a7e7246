"""Consumer groups: who is a member, who has which assignment, and how far each group has read."""
