-- What do the consumers wait for?
--
-- A row for each rank (-1: unknown) and loader, longest wait first. Columns: host, rank, loader,
-- batches, wait_s, preparing_s (part of it until the batch was built), ready_s (the rest: a queue,
-- a copy, a thread that fetches), wait_percent (of waits and steps), out_of_order (batches that
-- arrived before their turn), held_s (total time from built to received).
WITH waits AS (
  SELECT coalesce(host, '') AS host, coalesce(rank, -1) AS rank, loader, wait_ns,
         coalesce(step_ns, 0) AS step_ns,
         CASE WHEN delay_ns > 0 THEN delay_ns ELSE 0 END AS delay_ns,
         CASE WHEN delay_ns IS NULL OR delay_ns <= 0 THEN 0
              WHEN delay_ns < wait_ns THEN delay_ns ELSE wait_ns END AS ready_ns
  FROM batches WHERE wait_ns IS NOT NULL
), sums AS (
  SELECT host, rank, loader, count(*) AS batches, sum(wait_ns) AS wait_ns, sum(ready_ns) AS ready_ns,
         sum(step_ns) AS step_ns, sum(delay_ns) AS held_ns,
         sum(CASE WHEN wait_ns = 0 THEN 1 ELSE 0 END) AS out_of_order
  FROM waits GROUP BY host, rank, loader
)
SELECT host, rank, loader, batches, round(wait_ns / 1e6) / 1e3 AS wait_s,
       round((wait_ns - ready_ns) / 1e6) / 1e3 AS preparing_s, round(ready_ns / 1e6) / 1e3 AS ready_s,
       round(1e3 * wait_ns / nullif(wait_ns + step_ns, 0)) / 1e1 AS wait_percent,
       out_of_order, round(held_ns / 1e6) / 1e3 AS held_s
FROM sums ORDER BY wait_ns DESC, host, rank, loader
