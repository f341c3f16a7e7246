"""Take, work, publish and acknowledge in one step: python examples/client/transaction.py [server]"""

import sys

from goqueue.client import GoQueue


def main(server: str) -> None:
    with GoQueue(server) as queue:
        queue.topics.create("payments", partitions=1, exist_ok=True)
        queue.topics.create("receipts", partitions=1, exist_ok=True)
        end = queue.extents(["receipts"])["receipts"]["0"].end
        queue.publish("payments", {"amount": 42})

        with queue.consumer("payments", group="tellers", idle_timeout=1) as consumer:
            for payment in consumer:
                with payment, queue.transaction("teller-1") as transaction:
                    transaction.publish("receipts", f"received {payment.text}")
                    transaction.ack(payment)

        # Readers see what was committed, and nothing else.
        for receipt in queue.read("receipts", offset=end):
            print(receipt.text)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["localhost:8080"])
