"""Share work among consumers; what fails comes again: python examples/client/work_queue.py [server]"""

import sys

from goqueue.client import GoQueue


def handle(text: str, attempt: int) -> None:
    if text == "parcel 3" and attempt == 1:
        raise RuntimeError("the label did not print")


def main(server: str) -> None:
    with GoQueue(server) as queue:
        queue.topics.create("parcels", exist_ok=True)
        for number in range(5):
            queue.publish("parcels", f"parcel {number}")

        # A worker would leave `idle_timeout` out and run until it is stopped.
        with queue.consumer("parcels", group="packers", retry_delay=0.1, idle_timeout=1) as consumer:
            for message in consumer:
                with message:  # acknowledged at the end; an exception gives it back
                    handle(message.text, message.delivery_count)
                    print(f"{message.text} is packed, at attempt {message.delivery_count}")

        print(f"{queue.groups.lag('packers').total} left")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["localhost:8080"])
