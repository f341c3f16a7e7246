"""append_moved: messages that come from another topic, into a partition that is led here.

Who moves them may be another node, which asks again when it has not heard the answer, as may the node that
takes its group over: the numbers of the delivery's producer tell what is here already.
"""

from goqueue.broker.appending import OwnWrites, checked
from goqueue.broker.broker import Broker
from goqueue.model.delivery import AppendMoved, MovedTo
from goqueue.model.messages import Lane
from goqueue.records.batch import LaneBatch


async def append_moved(broker: Broker, command: AppendMoved) -> list[MovedTo]:
    """Where each message lies; returns when all of them are committed. Raises OutOfSequence."""
    partition = broker.partition(command.target)
    partition.admit_all()  # before the numbers are looked at: a copy may know some that never came to count
    written = OwnWrites()
    # A copy of each, into which its place is written.
    batches = [LaneBatch(memoryview(bytearray(body)), Lane(lane)) for body, lane in command.batches]
    stored = [written.append_once(partition, checked([batch])) for batch in batches]
    await written.durable()
    return [MovedTo(*one) for one in stored]
