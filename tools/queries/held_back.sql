-- Which rank held back which training steps, how often and by how much?
--
-- Lists ranks that did so significantly often, the costliest first. Columns: host, rank (-1:
-- unknown), loader, steps, held_back (steps in which this rank was last), saved_s (time saved if it
-- had been only as late as the next rank), usual_ms and worst_ms (median and maximum of its delay
-- behind the median rank), epoch and batch of the maximum.
--
-- Ranks that train together end a step together, so the rank that comes last has the shortest step:
-- no common clock is needed. It counts as last if its step is at least 5 % shorter than the median.
-- If ranks do not wait for each other in each step, the answer means nothing.
--
-- Significant: k held-back steps with k - l - 3 > 5 times the root of l; l = steps / ranks is the
-- number expected by chance. In a Poisson distribution with any l, this has a probability below
-- 0.001 %: with 1,000 ranks, one false alarm in a hundred cases.
WITH steps AS (
  SELECT coalesce(host, '') AS host, coalesce(rank, -1) AS rank, loader, epoch, batch, step_ns,
         row_number() OVER (PARTITION BY loader, epoch, batch ORDER BY step_ns, host, rank) AS place,
         count(*) OVER (PARTITION BY loader, epoch, batch) AS n
  FROM batches WHERE step_ns IS NOT NULL
), by_step AS (
  SELECT loader, epoch, batch, n, min(CASE WHEN place = 1 THEN host END) AS host,
         min(CASE WHEN place = 1 THEN rank END) AS rank,
         min(CASE WHEN place = 1 THEN step_ns END) AS last_ns,
         min(CASE WHEN place = 2 THEN step_ns END) AS next_ns,
         min(CASE WHEN 2 * place >= n THEN step_ns END) AS p50
  FROM steps WHERE n > 1 GROUP BY loader, epoch, batch, n
), totals AS (
  SELECT loader, count(*) AS steps, 1e0 * count(*) * count(*) / sum(n) AS expected
  FROM by_step GROUP BY loader
), late AS (
  SELECT loader, host, rank, epoch, batch, p50 - last_ns AS late, next_ns - last_ns AS saved,
         count(*) OVER (PARTITION BY loader, host, rank) AS n,
         row_number() OVER (PARTITION BY loader, host, rank
                            ORDER BY p50 - last_ns DESC, epoch, batch) AS place
  FROM by_step WHERE 20 * (p50 - last_ns) >= p50
), ranks AS (
  SELECT loader, host, rank, n, sum(saved) AS saved, max(late) AS worst,
         max(CASE WHEN 2 * place >= n THEN late END) AS usual,
         min(CASE WHEN place = 1 THEN epoch END) AS epoch,
         min(CASE WHEN place = 1 THEN batch END) AS batch
  FROM late GROUP BY loader, host, rank, n
)
SELECT r.host, r.rank, r.loader, t.steps, r.n AS held_back, round(r.saved / 1e6) / 1e3 AS saved_s,
       round(r.usual / 1e3) / 1e3 AS usual_ms, round(r.worst / 1e3) / 1e3 AS worst_ms,
       r.epoch, r.batch
FROM ranks r JOIN totals t ON t.loader = r.loader
WHERE r.n > t.expected + 3
      AND (r.n - t.expected - 3) * (r.n - t.expected - 3) > 25 * t.expected
ORDER BY r.saved DESC, r.host, r.rank, r.loader
