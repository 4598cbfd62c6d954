"""What Spark does: `job.py sort|wordcount|sql INPUT... OUTPUT`; the output is a folder of text."""

import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

# In the manner of the Big Data Benchmark's queries 2 and 3.
QUERY = """
WITH earners AS (
    SELECT substr(address, 1, 8) AS subnet, SUM(cents) AS revenue
    FROM visits GROUP BY substr(address, 1, 8)
), joined AS (
    SELECT address, SUM(cents) AS revenue, SUM(rank) AS ranks
    FROM visits JOIN rankings ON visits.page = rankings.page
    WHERE day BETWEEN 100 AND 250 GROUP BY address
)
SELECT concat_ws(',', subnet, revenue) AS value FROM earners
UNION ALL
SELECT concat_ws(',', address, revenue, ranks) AS value FROM
    (SELECT * FROM joined ORDER BY revenue DESC, address LIMIT 1000)
"""


def sort(spark: SparkSession, records: str) -> DataFrame:
    """Sort lines."""
    return spark.read.text(records).sort("value")


def wordcount(spark: SparkSession, text: str) -> DataFrame:
    """Count words."""
    words = spark.read.text(text).select(f.explode(f.split("value", " ")).alias("word"))
    return words.groupBy("word").count().select(f.concat_ws(",", "word", "count").alias("value"))


def sql(spark: SparkSession, rankings: str, visits: str) -> DataFrame:
    """Join and aggregate visits of pages."""
    shapes = {
        "rankings": (rankings, "page string, rank int, duration int"),
        "visits": (visits, "address string, page string, day int, cents bigint"),
    }
    for table, (path, shape) in shapes.items():
        spark.read.csv(path, schema=shape).createOrReplaceTempView(table)
    return spark.sql(QUERY)


if __name__ == "__main__":
    kind, *inputs, output = sys.argv[1:]
    session = SparkSession.builder.appName(kind).getOrCreate()
    begun = time.monotonic()
    if kind == "sort":
        result = sort(session, *inputs)
    elif kind == "wordcount":
        result = wordcount(session, *inputs)
    else:
        result = sql(session, *inputs)
    result.write.text(output)
    took_s = time.monotonic() - begun
    session.stop()
    print(f"answer={kind} measured_s={took_s:.6f}")
