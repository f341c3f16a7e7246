"""Consumer groups: who is a member, who reads what, how far each group is.

Owns the journals of `__consumer_offsets`, and the waiting of members for each other. Deliveries are events in
the same journals; what they mean is the work queue's business.
"""
