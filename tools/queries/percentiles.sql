-- How long does each operation take on each rank: usually, and at worst?
--
-- A row for each operation and rank (-1: unknown), widest spread first. Columns: name, host, rank,
-- calls, p50_us, p99_us, spread (p99 / p50). Percentiles are exact for times cut to three digits
-- (error below 1 %), so that the machines of a cluster exchange counts of times, not all spans.
WITH times AS (
  SELECT name, coalesce(host, '') AS host, coalesce(rank, -1) AS rank,
         CASE WHEN dur_ns < 1000 THEN dur_ns
              WHEN dur_ns < 10000 THEN dur_ns - dur_ns % 10
              WHEN dur_ns < 100000 THEN dur_ns - dur_ns % 100
              WHEN dur_ns < 1000000 THEN dur_ns - dur_ns % 1000
              WHEN dur_ns < 10000000 THEN dur_ns - dur_ns % 10000
              WHEN dur_ns < 100000000 THEN dur_ns - dur_ns % 100000
              WHEN dur_ns < 1000000000 THEN dur_ns - dur_ns % 1000000
              WHEN dur_ns < 10000000000 THEN dur_ns - dur_ns % 10000000
              WHEN dur_ns < 100000000000 THEN dur_ns - dur_ns % 100000000
              WHEN dur_ns < 1000000000000 THEN dur_ns - dur_ns % 1000000000
              ELSE dur_ns - dur_ns % 10000000000 END AS ns,
         count(*) AS calls
  FROM spans GROUP BY 1, 2, 3, 4
), counted AS (
  SELECT name, host, rank, ns, calls,
         sum(calls) OVER (PARTITION BY name, host, rank ORDER BY ns ROWS UNBOUNDED PRECEDING) AS upto,
         sum(calls) OVER (PARTITION BY name, host, rank) AS n
  FROM times
), percentiles AS (
  SELECT name, host, rank, sum(calls) AS calls,
         min(CASE WHEN 2 * upto >= n THEN ns END) AS p50_ns,
         min(CASE WHEN 100 * upto >= 99 * n THEN ns END) AS p99_ns
  FROM counted GROUP BY name, host, rank
)
SELECT name, host, rank, calls, p50_ns / 1e3 AS p50_us, p99_ns / 1e3 AS p99_us,
       round(1e2 * p99_ns / nullif(p50_ns, 0)) / 1e2 AS spread
FROM percentiles
ORDER BY coalesce(round(1e2 * p99_ns / nullif(p50_ns, 0)), 0) DESC, name, host, rank
