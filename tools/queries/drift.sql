-- Which operations became slower or faster during the day?
--
-- A row for each operation and hour since the first run began. Columns: name, hour, ranks (that
-- called it in this hour and in the first hour with any call), first_p50_us and p50_us (medians of
-- the ranks' medians in these hours), change_percent (median of the ranks' own changes, so that it
-- does not matter which ranks take part), significant (1 or 0). Times are cut to three digits.
--
-- Significant: the median of n ranks' changes is at least 5 %, and more than 6 + 80 / n standard
-- errors from 0. Its standard error is 1.2533 scales / root of n (asymptotic variance); a scale is
-- 1.4826 times the median absolute deviation, but at least 1 %. Below five ranks: 0.
WITH beginning AS (
  SELECT min(start_ns) AS first_ns FROM runs
), times AS (
  SELECT name, coalesce(host, '') AS host, coalesce(rank, -1) AS rank,
         (start_ns - first_ns) - (start_ns - first_ns) % 3600000000000 AS hour_ns,
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
  FROM spans CROSS JOIN beginning GROUP BY 1, 2, 3, 4, 5
), counted AS (
  SELECT name, host, rank, hour_ns, ns,
         sum(calls) OVER (PARTITION BY name, host, rank, hour_ns ORDER BY ns ROWS UNBOUNDED PRECEDING)
           AS upto,
         sum(calls) OVER (PARTITION BY name, host, rank, hour_ns) AS n,
         min(hour_ns) OVER (PARTITION BY name) AS first_hour_ns
  FROM times
), p50s AS (
  SELECT name, host, rank, hour_ns, first_hour_ns, min(CASE WHEN 2 * upto >= n THEN ns END) AS p50
  FROM counted GROUP BY name, host, rank, hour_ns, first_hour_ns
), changes AS (
  SELECT h.name, h.host, h.rank, h.hour_ns, h.p50, f.p50 AS first_p50, 1e0 * h.p50 / f.p50 AS change
  FROM p50s h JOIN p50s f ON f.name = h.name AND f.host = h.host AND f.rank = h.rank
                             AND f.hour_ns = h.first_hour_ns
  WHERE f.p50 > 0
), placed AS (
  SELECT name, hour_ns, p50, first_p50, change, count(*) OVER (PARTITION BY name, hour_ns) AS n,
         row_number() OVER (PARTITION BY name, hour_ns ORDER BY change) AS place,
         row_number() OVER (PARTITION BY name, hour_ns ORDER BY p50) AS p50_place,
         row_number() OVER (PARTITION BY name, hour_ns ORDER BY first_p50) AS first_place
  FROM changes
), middles AS (
  SELECT name, hour_ns, n, min(CASE WHEN 2 * place >= n THEN change END) AS middle,
         min(CASE WHEN 2 * p50_place >= n THEN p50 END) AS p50,
         min(CASE WHEN 2 * first_place >= n THEN first_p50 END) AS first_p50
  FROM placed GROUP BY name, hour_ns, n
), off AS (
  SELECT m.name, m.hour_ns, m.n, m.middle, m.p50, m.first_p50, abs(p.change - m.middle) AS deviation,
         row_number() OVER (PARTITION BY m.name, m.hour_ns ORDER BY abs(p.change - m.middle)) AS place
  FROM placed p JOIN middles m ON m.name = p.name AND m.hour_ns = p.hour_ns
), spread AS (
  SELECT name, hour_ns, n, middle, p50, first_p50,
         1.4826e0 * min(CASE WHEN 2 * place >= n THEN deviation END) AS mad
  FROM off GROUP BY name, hour_ns, n, middle, p50, first_p50
), scales AS (
  SELECT name, hour_ns, n, middle, p50, first_p50, CASE WHEN mad > 1e-2 THEN mad ELSE 1e-2 END AS scale
  FROM spread
)
SELECT name, CAST(hour_ns / 3.6e12 AS INTEGER) AS hour, n AS ranks, first_p50 / 1e3 AS first_p50_us,
       p50 / 1e3 AS p50_us, round(1e3 * (middle - 1)) / 1e1 AS change_percent,
       CASE WHEN n >= 5 AND abs(middle - 1) >= 5e-2
                 AND (middle - 1) * (middle - 1) * n
                     > (6 + 8e1 / n) * (6 + 8e1 / n) * 1.5708e0 * scale * scale
            THEN 1 ELSE 0 END AS significant
FROM scales ORDER BY name, hour_ns
