-- How long does each training step wait for data with nothing to hide it, and which rank causes it?
--
-- A row for each rank (-1: unknown) and loader, the one that causes most first. Columns: host, rank,
-- loader, steps, exposed_ms (mean over the steps of the longest wait of any rank; the same in all
-- rows), wait_ms (mean wait of this rank), longest_in (steps in which it waited longest), caused_ms
-- (how much less would be exposed if it had then waited as long as the next rank), build_ms and
-- ready_ms (mean time to build a batch, and part of the wait in which it was ready), cause (1: this
-- rank causes it, and not by chance).
--
-- If ranks do not wait for each other in each step, the answer means nothing.
--
-- Significant: as 'lotus-tool diagnose --ranks' tests it, see docs/internals/statistics.md, except
-- that fewer workers do not count. squares is that of the limit 5.4 + 2 ln n, rounded up.
WITH waits AS (
  SELECT coalesce(host, '') AS host, coalesce(rank, -1) AS rank, loader, epoch, batch, wait_ns,
         step_ns, coalesce(preprocess_ns, 0) AS build_ns,
         CASE WHEN delay_ns IS NULL OR delay_ns <= 0 THEN 0
              WHEN delay_ns < wait_ns THEN delay_ns ELSE wait_ns END AS ready_ns
  FROM batches WHERE wait_ns IS NOT NULL
), placed AS (
  SELECT waits.*, count(*) OVER (PARTITION BY loader, epoch, batch) AS n,
         row_number() OVER (PARTITION BY loader, epoch, batch ORDER BY wait_ns DESC, host, rank) AS place,
         row_number() OVER (PARTITION BY loader, epoch, batch ORDER BY build_ns) AS by_build,
         row_number() OVER (PARTITION BY loader, epoch, batch ORDER BY ready_ns) AS by_ready
  FROM waits
), by_step AS (
  SELECT loader, epoch, batch, n, min(CASE WHEN place = 1 THEN host END) AS host,
         min(CASE WHEN place = 1 THEN rank END) AS rank,
         min(CASE WHEN place = 1 THEN wait_ns + coalesce(step_ns, 0) END) AS cycle_ns,
         max(wait_ns) AS longest_ns, min(CASE WHEN place = 2 THEN wait_ns END) AS next_ns,
         min(CASE WHEN 2 * by_build >= n THEN build_ns END) AS usual_build,
         min(CASE WHEN 2 * by_ready >= n THEN ready_ns END) AS usual_ready
  FROM placed WHERE n > 1 GROUP BY loader, epoch, batch, n
), totals AS (
  SELECT loader, count(*) AS steps, max(n) AS n, avg(longest_ns * 1e0) AS exposed,
         avg(cycle_ns * 1e0) AS cycle
  FROM by_step GROUP BY loader
), caused AS (
  SELECT loader, host, rank, count(*) AS longest_in, sum(longest_ns - next_ns) * 1e0 AS caused
  FROM by_step GROUP BY loader, host, rank
), ordered AS (
  SELECT caused.*, row_number() OVER (PARTITION BY loader ORDER BY caused DESC, host, rank) AS place
  FROM caused
), means AS (
  SELECT host, rank, loader, avg(wait_ns * 1e0) AS wait, avg(build_ns * 1e0) AS build,
         avg(ready_ns * 1e0) AS ready
  FROM waits GROUP BY host, rank, loader
), series AS (
  SELECT o.loader, o.host, o.rank, s.epoch, s.batch, t.n,
         ntile(5) OVER (PARTITION BY o.loader ORDER BY s.epoch, s.batch) AS fifth,
         (CASE WHEN s.host = o.host AND s.rank = o.rank THEN 1e0
               WHEN s.host = p.host AND s.rank = p.rank THEN -1e0 ELSE 0e0 END)
           * (s.longest_ns - s.next_ns) AS more,
         CASE WHEN 2 * m.ready > m.wait THEN (w.ready_ns - s.usual_ready) * 1e0
              ELSE (w.build_ns - s.usual_build) * 1e0 END AS longer
  FROM ordered o JOIN totals t ON t.loader = o.loader
       JOIN means m ON m.loader = o.loader AND m.host = o.host AND m.rank = o.rank
       JOIN by_step s ON s.loader = o.loader
       JOIN waits w ON w.loader = o.loader AND w.host = o.host AND w.rank = o.rank
                       AND w.epoch = s.epoch AND w.batch = s.batch
       LEFT JOIN ordered p ON p.loader = o.loader AND p.place = 2
  WHERE o.place = 1 AND o.caused >= t.steps * t.cycle / 1e2
), centered AS (
  SELECT series.*, avg(more) OVER (PARTITION BY loader) AS more_mean,
         avg(longer) OVER (PARTITION BY loader) AS longer_mean,
         avg(more) OVER (PARTITION BY loader, fifth) AS of_fifth
  FROM series
), summed AS (
  SELECT centered.*,
         sum(more - more_mean) OVER (PARTITION BY loader ORDER BY epoch, batch
                                     ROWS UNBOUNDED PRECEDING) AS more_sum,
         sum(longer - longer_mean) OVER (PARTITION BY loader ORDER BY epoch, batch
                                         ROWS UNBOUNDED PRECEDING) AS longer_sum
  FROM centered
), tested AS (
  SELECT loader, host, rank, 1e0 * count(*) * count(*) * count(*) AS cube, more_mean, longer_mean,
         min(of_fifth) AS least_fifth, sum(more_sum * more_sum) AS more_squares,
         sum(longer_sum * longer_sum) AS longer_squares,
         CASE WHEN max(n) <= 4 THEN 67 WHEN max(n) <= 16 THEN 120 WHEN max(n) <= 64 THEN 189
              WHEN max(n) <= 256 THEN 272 WHEN max(n) <= 1024 THEN 371 ELSE 567 END AS squares
  FROM summed GROUP BY loader, host, rank, more_mean, longer_mean
), sure AS (
  SELECT loader, host, rank FROM tested
  WHERE more_mean > 0 AND longer_mean > 0 AND least_fifth >= 4e-1 * more_mean
        AND more_mean * more_mean * cube > 292e-1 * more_squares
        AND longer_mean * longer_mean * cube > squares * longer_squares
)
SELECT m.host, m.rank, m.loader, t.steps, round(t.exposed / 1e3) / 1e3 AS exposed_ms,
       round(m.wait / 1e3) / 1e3 AS wait_ms, coalesce(o.longest_in, 0) AS longest_in,
       round(coalesce(o.caused, 0) / t.steps / 1e3) / 1e3 AS caused_ms,
       round(m.build / 1e3) / 1e3 AS build_ms, round(m.ready / 1e3) / 1e3 AS ready_ms,
       CASE WHEN s.rank IS NULL THEN 0 ELSE 1 END AS cause
FROM means m JOIN totals t ON t.loader = m.loader
     LEFT JOIN ordered o ON o.loader = m.loader AND o.host = m.host AND o.rank = m.rank
     LEFT JOIN sure s ON s.loader = m.loader AND s.host = m.host AND s.rank = m.rank
ORDER BY coalesce(o.caused, 0) DESC, m.host, m.rank, m.loader
