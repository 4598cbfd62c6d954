"""The applications by name."""

from .app import App
from .duckdb.app import DUCKDB
from .graph.app import GRAPH
from .gxx.app import GXX
from .java.app import JAVA
from .memcached.app import MEMCACHED
from .numpy.app import NUMPY
from .redis.app import REDIS
from .spark.app import SPARK
from .sqlite.app import SQLITE
from .strings.app import STRINGS
from .text.app import TEXT
from .timely.app import TIMELY

ALL = [
    *[*REDIS, *MEMCACHED, *SPARK, *TIMELY, *GRAPH, *SQLITE, *DUCKDB, *NUMPY, *GXX],
    *[*STRINGS, *TEXT, *JAVA],
]
REGISTRY: dict[str, App] = {app.name: app for app in ALL}
