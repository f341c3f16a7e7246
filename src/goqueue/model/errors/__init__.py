"""One tree of errors, sorted by what the caller can do next; a module here for what each is about.

`code` is for programs and never changes its meaning; the text is for people; facts are fields.
Each door maps the families (and a few members) to its own codes in one table. All are imported from
here, so that nobody need know which module an error lies in.
"""

from goqueue.model.errors.access import *
from goqueue.model.errors.backups import *
from goqueue.model.errors.cluster import *
from goqueue.model.errors.delays import *
from goqueue.model.errors.delivery import *
from goqueue.model.errors.families import *
from goqueue.model.errors.groups import *
from goqueue.model.errors.messages import *
from goqueue.model.errors.schemas import *
from goqueue.model.errors.sinks import *
from goqueue.model.errors.storage import *
from goqueue.model.errors.tenants import *
from goqueue.model.errors.topics import *
from goqueue.model.errors.transactions import *
