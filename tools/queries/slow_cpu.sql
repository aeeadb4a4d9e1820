-- Which hosts need more CPU time than others for the same work: a slow, hot or shared CPU?
--
-- Lists significantly slow hosts, slowest first. Columns: host, operations (how many are compared), slower
-- (of them, those with 5 % more than the median host), slower_percent (median over the operations), scales
-- (distance from the median of all hosts). Three of four operations must be slower: one alone means other
-- work, not another CPU. Times are medians of calls, cut to three digits. Needs CPU time (cpu_ns).
--
-- Significant: more than 6 + 80 / n scales above the median of all n hosts. A scale is 1.4826 times the
-- median absolute deviation (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), but at least
-- 1 % of the median, so that differences below 6 % are never significant. Of 1,000 equal hosts, the
-- farthest exceeds 4.3 scales in one of a hundred cases (Bonferroni); the rest of the limit is for skew,
-- and for the uncertain deviation of few values. Below n = 5, none is listed.
WITH times AS (
  SELECT name, coalesce(host, '') AS host,
         CASE WHEN cpu_ns < 1000 THEN cpu_ns
              WHEN cpu_ns < 10000 THEN cpu_ns - cpu_ns % 10
              WHEN cpu_ns < 100000 THEN cpu_ns - cpu_ns % 100
              WHEN cpu_ns < 1000000 THEN cpu_ns - cpu_ns % 1000
              WHEN cpu_ns < 10000000 THEN cpu_ns - cpu_ns % 10000
              WHEN cpu_ns < 100000000 THEN cpu_ns - cpu_ns % 100000
              WHEN cpu_ns < 1000000000 THEN cpu_ns - cpu_ns % 1000000
              WHEN cpu_ns < 10000000000 THEN cpu_ns - cpu_ns % 10000000
              WHEN cpu_ns < 100000000000 THEN cpu_ns - cpu_ns % 100000000
              WHEN cpu_ns < 1000000000000 THEN cpu_ns - cpu_ns % 1000000000
              ELSE cpu_ns - cpu_ns % 10000000000 END AS ns,
         count(*) AS calls
  FROM spans WHERE cpu_ns > 0 GROUP BY 1, 2, 3
), counted AS (
  SELECT name, host, ns,
         sum(calls) OVER (PARTITION BY name, host ORDER BY ns ROWS UNBOUNDED PRECEDING) AS upto,
         sum(calls) OVER (PARTITION BY name, host) AS n
  FROM times
), p50s AS (
  SELECT name, host, min(CASE WHEN 2 * upto >= n THEN ns END) AS p50
  FROM counted GROUP BY name, host HAVING max(n) >= 10
), placed AS (
  SELECT name, host, p50, count(*) OVER (PARTITION BY name) AS n,
         row_number() OVER (PARTITION BY name ORDER BY p50) AS place
  FROM p50s
), usual AS (
  SELECT name, min(CASE WHEN 2 * place >= n THEN p50 END) AS p50 FROM placed GROUP BY name
), ratios AS (
  SELECT p.host, 1e0 * p.p50 / u.p50 AS ratio, count(*) OVER (PARTITION BY p.host) AS n,
         row_number() OVER (PARTITION BY p.host ORDER BY 1e0 * p.p50 / u.p50) AS place
  FROM p50s p JOIN usual u ON u.name = p.name
), hosts AS (
  SELECT host, n AS operations, sum(CASE WHEN ratio >= 1.05e0 THEN 1 ELSE 0 END) AS slower,
         min(CASE WHEN 2 * place >= n THEN ratio END) AS ratio
  FROM ratios GROUP BY host, n
), placed_hosts AS (
  SELECT ratio, count(*) OVER () AS n, row_number() OVER (ORDER BY ratio) AS place FROM hosts
), middles AS (
  SELECT n, min(CASE WHEN 2 * place >= n THEN ratio END) AS middle FROM placed_hosts GROUP BY n
), off AS (
  SELECT m.n, m.middle, abs(h.ratio - m.middle) AS deviation,
         row_number() OVER (ORDER BY abs(h.ratio - m.middle)) AS place
  FROM hosts h CROSS JOIN middles m
), spread AS (
  SELECT n, middle, 1.4826e0 * min(CASE WHEN 2 * place >= n THEN deviation END) AS mad
  FROM off GROUP BY n, middle
), scales AS (
  SELECT n, middle, CASE WHEN mad > middle / 1e2 THEN mad ELSE middle / 1e2 END AS scale FROM spread
)
SELECT h.host, h.operations, h.slower,
       round(1e3 * (h.ratio - s.middle) / s.middle) / 1e1 AS slower_percent,
       round(1e1 * (h.ratio - s.middle) / s.scale) / 1e1 AS scales
FROM hosts h CROSS JOIN scales s
WHERE s.n >= 5 AND 4 * h.slower >= 3 * h.operations
      AND h.ratio - s.middle > (6 + 8e1 / s.n) * s.scale
ORDER BY h.ratio DESC, h.host
