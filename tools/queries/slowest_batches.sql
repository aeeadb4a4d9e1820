-- Which batches took longest to build, and which operation took most of that time?
--
-- The 20 slowest batches. Columns: host, rank (-1: unknown), loader, epoch, batch, preprocess_ms,
-- times_median (preprocess_ms / the loader's median on all ranks, cut to three digits), wait_ms (of
-- the consumer), operation (with the largest self time in the batch), operation_ms (that time).
WITH times AS (
  SELECT loader,
         CASE WHEN preprocess_ns < 1000 THEN preprocess_ns
              WHEN preprocess_ns < 10000 THEN preprocess_ns - preprocess_ns % 10
              WHEN preprocess_ns < 100000 THEN preprocess_ns - preprocess_ns % 100
              WHEN preprocess_ns < 1000000 THEN preprocess_ns - preprocess_ns % 1000
              WHEN preprocess_ns < 10000000 THEN preprocess_ns - preprocess_ns % 10000
              WHEN preprocess_ns < 100000000 THEN preprocess_ns - preprocess_ns % 100000
              WHEN preprocess_ns < 1000000000 THEN preprocess_ns - preprocess_ns % 1000000
              WHEN preprocess_ns < 10000000000 THEN preprocess_ns - preprocess_ns % 10000000
              WHEN preprocess_ns < 100000000000 THEN preprocess_ns - preprocess_ns % 100000000
              WHEN preprocess_ns < 1000000000000 THEN preprocess_ns - preprocess_ns % 1000000000
              ELSE preprocess_ns - preprocess_ns % 10000000000 END AS ns,
         count(*) AS batches
  FROM batches WHERE preprocess_ns > 0 GROUP BY 1, 2
), counted AS (
  SELECT loader, ns, sum(batches) OVER (PARTITION BY loader ORDER BY ns ROWS UNBOUNDED PRECEDING) AS upto,
         sum(batches) OVER (PARTITION BY loader) AS n
  FROM times
), middle AS (
  SELECT loader, min(CASE WHEN 2 * upto >= n THEN ns END) AS p50_ns FROM counted GROUP BY loader
), slowest AS (
  SELECT coalesce(host, '') AS host, coalesce(rank, -1) AS rank, loader, epoch, batch, preprocess_ns,
         wait_ns
  FROM batches WHERE preprocess_ns > 0
  ORDER BY preprocess_ns DESC, coalesce(host, ''), coalesce(rank, -1), loader, epoch, batch LIMIT 20
), work AS (
  SELECT s.host, s.rank, s.loader, s.epoch, s.batch, o.name, sum(o.self_ns) AS self_ns
  FROM spans o JOIN slowest s
    ON coalesce(o.host, '') = s.host AND coalesce(o.rank, -1) = s.rank AND o.loader = s.loader
       AND o.epoch = s.epoch AND o.batch = s.batch
  GROUP BY s.host, s.rank, s.loader, s.epoch, s.batch, o.name
), most AS (
  SELECT host, rank, loader, epoch, batch, name, self_ns,
         row_number() OVER (PARTITION BY host, rank, loader, epoch, batch
                            ORDER BY self_ns DESC, name) AS place
  FROM work
)
SELECT s.host, s.rank, s.loader, s.epoch, s.batch, round(s.preprocess_ns / 1e3) / 1e3 AS preprocess_ms,
       round(1e2 * s.preprocess_ns / m.p50_ns) / 1e2 AS times_median,
       round(s.wait_ns / 1e3) / 1e3 AS wait_ms,
       w.name AS operation, round(w.self_ns / 1e3) / 1e3 AS operation_ms
FROM slowest s JOIN middle m ON m.loader = s.loader
LEFT JOIN most w ON w.host = s.host AND w.rank = s.rank AND w.loader = s.loader
                    AND w.epoch = s.epoch AND w.batch = s.batch AND w.place = 1
ORDER BY s.preprocess_ns DESC, s.host, s.rank, s.loader, s.epoch, s.batch
