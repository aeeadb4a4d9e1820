-- Where does the threads' time go?
--
-- A row for an operation, the largest first: name, ranks, calls, self_s: its own time, what it called
-- left out, of all threads together; self_percent of all operations' self time; busiest_host and its
-- busiest_percent: of all the time spent in the operation, on the host with most of it, beside
-- even_percent: what each would have if it were the same on all; cpu_percent: of the operation's
-- time (with what it called) on a CPU, empty where CPU time was not measured.
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
