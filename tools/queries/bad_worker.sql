-- Which thread is slower than the other threads of its rank in the same operations?
--
-- Lists significantly slow threads, slowest first. Columns: host, rank (-1: unknown), pid, tid,
-- thread (name), operations (how many are compared), slower_percent (median over the operations),
-- scales (distance from the median of all threads). Compares medians of times, cut to three digits,
-- of operations with at least ten calls and half as many as the rank's other threads have on average.
--
-- Significant: more than 6 + 80 / n scales above the median of all n threads. A scale is 1.4826 times
-- the median absolute deviation (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), but
-- at least 1 % of the median, so that differences below 6 % are never significant. Of 1,000 equal
-- threads, the farthest exceeds 4.3 scales in one of a hundred cases (Bonferroni); the rest of the
-- limit is for skew, and for the uncertain deviation of few values. Below n = 5, none is listed.
WITH times AS (
  SELECT coalesce(host, '') AS host, coalesce(rank, -1) AS rank, coalesce(pid, -1) AS pid,
         coalesce(tid, -1) AS tid, name,
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
         count(*) AS calls, min(thread) AS thread
  FROM spans GROUP BY 1, 2, 3, 4, 5, 6
), counted AS (
  SELECT host, rank, pid, tid, name, ns, thread,
         sum(calls) OVER (PARTITION BY host, rank, pid, tid, name ORDER BY ns ROWS UNBOUNDED PRECEDING)
           AS upto,
         sum(calls) OVER (PARTITION BY host, rank, pid, tid, name) AS n
  FROM times
), p50s AS (
  SELECT host, rank, pid, tid, name, max(n) AS calls, min(thread) AS thread,
         min(CASE WHEN 2 * upto >= n THEN ns END) AS p50
  FROM counted GROUP BY host, rank, pid, tid, name HAVING max(n) >= 10
), mates AS (
  SELECT host, rank, pid, tid, name, thread, calls, p50,
         count(*) OVER (PARTITION BY host, rank, name) - 1 AS mates,
         sum(calls) OVER (PARTITION BY host, rank, name) - calls AS mates_calls,
         sum(p50) OVER (PARTITION BY host, rank, name) - p50 AS mates_p50
  FROM p50s WHERE p50 > 0
), ratios AS (
  SELECT host, rank, pid, tid, thread, 1e0 * p50 * mates / mates_p50 AS ratio,
         count(*) OVER (PARTITION BY host, rank, pid, tid) AS n,
         row_number() OVER (PARTITION BY host, rank, pid, tid ORDER BY 1e0 * p50 * mates / mates_p50)
           AS place
  FROM mates WHERE mates > 0 AND 2 * calls * mates >= mates_calls
), threads AS (
  SELECT host, rank, pid, tid, min(thread) AS thread, n AS operations,
         min(CASE WHEN 2 * place >= n THEN ratio END) AS ratio
  FROM ratios GROUP BY host, rank, pid, tid, n
), placed AS (
  SELECT ratio, count(*) OVER () AS n, row_number() OVER (ORDER BY ratio) AS place FROM threads
), middles AS (
  SELECT n, min(CASE WHEN 2 * place >= n THEN ratio END) AS middle FROM placed GROUP BY n
), off AS (
  SELECT m.n, m.middle, abs(t.ratio - m.middle) AS deviation,
         row_number() OVER (ORDER BY abs(t.ratio - m.middle)) AS place
  FROM threads t CROSS JOIN middles m
), spread AS (
  SELECT n, middle, 1.4826e0 * min(CASE WHEN 2 * place >= n THEN deviation END) AS mad
  FROM off GROUP BY n, middle
), scales AS (
  SELECT n, middle, CASE WHEN mad > middle / 1e2 THEN mad ELSE middle / 1e2 END AS scale FROM spread
)
SELECT t.host, t.rank, t.pid, t.tid, t.thread, t.operations,
       round(1e3 * (t.ratio - 1)) / 1e1 AS slower_percent,
       round(1e1 * (t.ratio - s.middle) / s.scale) / 1e1 AS scales
FROM threads t CROSS JOIN scales s
WHERE s.n >= 5 AND t.ratio - s.middle > (6 + 8e1 / s.n) * s.scale
ORDER BY t.ratio DESC, t.host, t.rank, t.pid, t.tid
