"""Queries like TPC-H's, in words that SQLite and DuckDB share; money is whole cents."""

from pathlib import Path

from .data import tables

ORDERS = {"small": 240_000}

SCHEMA = """
CREATE TABLE orders(o_id INTEGER, o_customer INTEGER, o_day INTEGER, o_priority INTEGER);
CREATE TABLE lines(l_order INTEGER, l_quantity INTEGER, l_cents INTEGER, l_percent INTEGER,
    l_tax INTEGER, l_day INTEGER, l_flag TEXT, l_status TEXT);
"""
# In the manner of TPC-H's queries 1, 3, 4 and 18.
QUERIES = [
    """
    SELECT l_flag, l_status, SUM(l_quantity), SUM(l_cents * (100 - l_percent)),
        SUM(l_cents * (100 - l_percent) * (100 + l_tax)), COUNT(*)
    FROM lines WHERE l_day <= 2400 GROUP BY l_flag, l_status ORDER BY l_flag, l_status;
    """,
    """
    SELECT o_id, SUM(l_cents * (100 - l_percent)) AS revenue, o_day, o_customer
    FROM orders JOIN lines ON l_order = o_id
    WHERE o_day < 1200 AND l_day > 1200 AND o_priority < 3
    GROUP BY o_id, o_day, o_customer ORDER BY revenue DESC, o_id LIMIT 1000;
    """,
    """
    SELECT o_priority, COUNT(*) FROM orders
    WHERE o_id IN (SELECT l_order FROM lines WHERE l_quantity > 45 AND l_flag = 'R')
    GROUP BY o_priority ORDER BY o_priority;
    """,
    """
    SELECT o_customer, COUNT(*), SUM(total) AS bought
    FROM (SELECT l_order, SUM(l_quantity) AS total FROM lines GROUP BY l_order
        HAVING SUM(l_quantity) > 120) AS large JOIN orders ON o_id = l_order
    GROUP BY o_customer ORDER BY bought DESC, o_customer LIMIT 1000;
    """,
]


def data(size: str) -> tuple[Path, Path]:
    """Give the tables of a size: orders and lines."""
    return tables(ORDERS[size])
