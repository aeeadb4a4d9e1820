-- In which operations do the threads spend their time?
--
-- A row for each operation, largest first. Columns: name, ranks, calls, self_s (time without the
-- operations inside, summed over all threads), self_percent (share in the self time of all
-- operations), busiest_host (host with the largest part of self_s), busiest_percent (that part),
-- even_percent (the part of each host if all were equal), cpu_percent (share of the operation's
-- time, with the operations inside, that was spent on a CPU; empty if CPU time was not measured).
WITH hosts AS (
  SELECT name, coalesce(host, '') AS host, count(*) AS calls, sum(self_ns) AS self_ns,
         count(DISTINCT coalesce(rank, -1)) AS ranks, sum(cpu_ns) AS cpu_ns,
         sum(CASE WHEN cpu_ns IS NOT NULL THEN dur_ns END) AS dur_ns
  FROM spans GROUP BY name, coalesce(host, '')
), placed AS (
  SELECT name, host, calls, self_ns, ranks, cpu_ns, dur_ns,
         row_number() OVER (PARTITION BY name ORDER BY self_ns DESC, host) AS place
  FROM hosts
), operations AS (
  SELECT name, sum(calls) AS calls, sum(self_ns) AS self_ns, sum(ranks) AS ranks, count(*) AS hosts,
         sum(cpu_ns) AS cpu_ns, sum(dur_ns) AS dur_ns, max(self_ns) AS most_ns,
         min(CASE WHEN place = 1 THEN host END) AS busiest_host
  FROM placed GROUP BY name
), everything AS (
  SELECT sum(self_ns) AS self_ns FROM operations
)
SELECT o.name, o.ranks, o.calls, round(o.self_ns / 1e6) / 1e3 AS self_s,
       round(1e4 * o.self_ns / nullif(e.self_ns, 0)) / 1e2 AS self_percent, o.busiest_host,
       round(1e4 * o.most_ns / nullif(o.self_ns, 0)) / 1e2 AS busiest_percent,
       round(1e4 / o.hosts) / 1e2 AS even_percent,
       round(1e4 * o.cpu_ns / nullif(o.dur_ns, 0)) / 1e2 AS cpu_percent
FROM operations o CROSS JOIN everything e
ORDER BY o.self_ns DESC, o.name
