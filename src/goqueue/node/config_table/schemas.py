"""Settings of schemas, and of the helper processes that check them."""

from goqueue.model.settings import KiB
from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import size, whole_number

SCHEMAS_TEXT_MAX: Setting[int] = Setting(
    name="SCHEMAS_TEXT_MAX",
    default="1048576",
    read=whole_number(least=1, most=4 * KiB * KiB),
    help="The most characters of a schema.",
)
SCHEMAS_CHECK_LIMIT_MS: Setting[int] = Setting(
    name="SCHEMAS_CHECK_LIMIT_MS",
    default="1000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The CPU time to check a message where nobody can tell how long it takes; then it is refused.",
)
SCHEMAS_CHECKERS_MAX: Setting[int] = Setting(
    name="SCHEMAS_CHECKERS_MAX",
    default="1000",
    read=whole_number(least=1, most=INT32_MAX),
    help="Schemas that are kept ready to check messages; the one used longest ago goes first.",
)
SCHEMAS_CHECKERS_BYTES: Setting[int] = Setting(
    name="SCHEMAS_CHECKERS_BYTES",
    default="32MiB",
    read=size(least=1, most=INT64_MAX),
    help="The same by the size of what they are made from.",
)
WORKSHOP_PROCESSES: Setting[int] = Setting(
    name="WORKSHOP_PROCESSES",
    default="2",
    read=whole_number(least=1, most=64),
    help="The most helper processes, which do what may take long: schemas are understood and compared "
    "there. They are started when there is work for them.",
)
WORKSHOP_MEMORY_BYTES: Setting[int] = Setting(
    name="WORKSHOP_MEMORY_BYTES",
    default="512MiB",
    read=size(least=128 * KiB * KiB, most=INT64_MAX),
    help="The address space of a helper process.",
)
WORKSHOP_JOB_LIMIT_MS: Setting[int] = Setting(
    name="WORKSHOP_JOB_LIMIT_MS",
    default="5000",
    read=whole_number(least=100, most=INT32_MAX),
    help="The CPU time of one job of a helper process; then it is killed and the request refused.",
)
WORKSHOP_WAITING_MAX: Setting[int] = Setting(
    name="WORKSHOP_WAITING_MAX",
    default="64",
    read=whole_number(least=0, most=INT32_MAX),
    help="Jobs that may wait for a helper process; more are answered with `workshop_busy`.",
)
WORKSHOP_WAIT_MS: Setting[int] = Setting(
    name="WORKSHOP_WAIT_MS",
    default="10000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How long a job waits for a helper process before it is answered so, too.",
)
WORKSHOP_IDLE_MS: Setting[int] = Setting(
    name="WORKSHOP_IDLE_MS",
    default="60000",
    read=whole_number(least=0, most=INT32_MAX),
    help="How long a helper process without work stays.",
)
