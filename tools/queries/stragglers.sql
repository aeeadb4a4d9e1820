-- Which ranks take longer than the others to build their batches?
--
-- Lists significantly slow ranks, slowest first. Columns: host, rank (-1: unknown), loader, batches,
-- p50_ms (median preprocess time), others_p50_ms (median of all ranks' p50), slower_percent, scales
-- (distance from others_p50_ms). Ranks with fewer than five batches are ignored.
--
-- Significant: more than 6 + 80 / n scales above the median of all n ranks. A scale is 1.4826 times
-- the median absolute deviation (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), but
-- at least 1 % of the median, so that differences below 6 % are never significant. Of 1,000 equal
-- ranks, the farthest exceeds 4.3 scales in one of a hundred cases (Bonferroni); the rest of the
-- limit is for skew, and for the uncertain deviation of few values. Below n = 5, none is listed.
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
