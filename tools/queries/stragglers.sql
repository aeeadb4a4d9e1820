-- Which ranks take longer than the others to make their batches?
--
-- Only the significant ones, slowest first: host, rank (-1: not known), loader, batches, p50_ms of
-- its preprocessing, others_p50_ms: the median of all ranks' p50, slower_percent, scales: how far
-- beyond the others it lies. Ranks with fewer than five batches are left out.
--
-- Significant: beyond the median by 6 + 80 / n scales, n of them compared. The scale is 1.4826 times
-- the median absolute deviation (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), or
-- 1 % of the median, whichever is larger, so that nothing below 6 % is named. Of 1,000
-- equal ones the farthest of all lies at 4.3 scales once in a hundred times (Bonferroni); the rest
-- is for skew, and for the deviation of few being uncertain. Below five none is named.
WITH made AS (
  SELECT coalesce(host, '') AS host, coalesce(rank, -1) AS rank, loader, preprocess_ns,
         row_number() OVER (PARTITION BY host, rank, loader ORDER BY preprocess_ns) AS place,
         count(*) OVER (PARTITION BY host, rank, loader) AS n
  FROM batches WHERE preprocess_ns > 0
), ranks AS (
  SELECT host, rank, loader, count(*) AS batches,
         min(CASE WHEN 2 * place >= n THEN preprocess_ns END) AS p50
  FROM made GROUP BY host, rank, loader HAVING count(*) >= 5
), placed AS (
  SELECT host, rank, loader, batches, p50,
         row_number() OVER (PARTITION BY loader ORDER BY p50) AS place,
         count(*) OVER (PARTITION BY loader) AS n
  FROM ranks
), middles AS (
  SELECT loader, n, min(CASE WHEN 2 * place >= n THEN p50 END) AS middle
  FROM placed GROUP BY loader, n
), off AS (
  SELECT p.loader, m.n, m.middle, abs(p.p50 - m.middle) AS deviation,
         row_number() OVER (PARTITION BY p.loader ORDER BY abs(p.p50 - m.middle)) AS place
  FROM placed p JOIN middles m ON m.loader = p.loader
), spread AS (
  SELECT loader, n, middle, 1.4826e0 * min(CASE WHEN 2 * place >= n THEN deviation END) AS mad
  FROM off GROUP BY loader, n, middle
), scales AS (
  SELECT loader, n, middle, CASE WHEN mad > middle / 1e2 THEN mad ELSE middle / 1e2 END AS scale
  FROM spread
)
SELECT r.host, r.rank, r.loader, r.batches, round(r.p50 / 1e3) / 1e3 AS p50_ms,
       round(s.middle / 1e3) / 1e3 AS others_p50_ms,
       round(1e3 * (r.p50 - s.middle) / s.middle) / 1e1 AS slower_percent,
       round(1e1 * (r.p50 - s.middle) / s.scale) / 1e1 AS scales
FROM ranks r JOIN scales s ON s.loader = r.loader
WHERE s.n >= 5 AND r.p50 - s.middle > (6 + 8e1 / s.n) * s.scale
ORDER BY r.p50 DESC, r.host, r.rank, r.loader
