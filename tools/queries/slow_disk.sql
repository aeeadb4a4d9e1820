-- Which hosts wait longer than others within the same operations: a slow disk, a slow network?
--
-- Lists significant pairs, the farthest first. Columns: host, operation (callers of a waiting operation
-- are listed too), ranks, off_cpu_ms (time per call off the CPU) and others_off_cpu_ms (median of all
-- hosts), wall_ms and others_wall_ms, cpu_ms and others_cpu_ms (if these two differ as well, see
-- slow_cpu.sql), scales (distance from the median of all hosts). A host's time is the median of its
-- ranks' means, so that one bad moment of one rank has no effect. Needs CPU time (cpu_ns). Too few CPUs
-- for the threads look like a slow disk: see run_queue_ns in lotus-tool stats.
--
-- Significant: more than 6 + 80 / n scales above the median of all n hosts. A scale is 1.4826 times the
-- median absolute deviation (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), but at
-- least 1 % of the operation's wall time, so that differences below 6 % are never significant. Of 1,000
-- equal hosts, the farthest exceeds 4.3 scales in one of a hundred cases (Bonferroni); the rest of the
-- limit is for skew, and for the uncertain deviation of few values. Below n = 5, none is listed.
WITH means AS (
  SELECT name, coalesce(host, '') AS host, coalesce(rank, -1) AS rank,
         sum(dur_ns - cpu_ns) * 1e0 / count(*) AS off_ns, sum(dur_ns) * 1e0 / count(*) AS wall_ns,
         sum(cpu_ns) * 1e0 / count(*) AS cpu_ns
  FROM spans WHERE cpu_ns IS NOT NULL
  GROUP BY name, coalesce(host, ''), coalesce(rank, -1)
), placed AS (
  SELECT name, host, off_ns, wall_ns, cpu_ns, count(*) OVER (PARTITION BY name, host) AS n,
         row_number() OVER (PARTITION BY name, host ORDER BY off_ns) AS off_place,
         row_number() OVER (PARTITION BY name, host ORDER BY wall_ns) AS wall_place,
         row_number() OVER (PARTITION BY name, host ORDER BY cpu_ns) AS cpu_place
  FROM means
), hosts AS (
  SELECT name, host, n AS ranks, min(CASE WHEN 2 * off_place >= n THEN off_ns END) AS off_ns,
         min(CASE WHEN 2 * wall_place >= n THEN wall_ns END) AS wall_ns,
         min(CASE WHEN 2 * cpu_place >= n THEN cpu_ns END) AS cpu_ns
  FROM placed GROUP BY name, host, n
), placed_hosts AS (
  SELECT name, off_ns, wall_ns, cpu_ns, count(*) OVER (PARTITION BY name) AS n,
         row_number() OVER (PARTITION BY name ORDER BY off_ns) AS off_place,
         row_number() OVER (PARTITION BY name ORDER BY wall_ns) AS wall_place,
         row_number() OVER (PARTITION BY name ORDER BY cpu_ns) AS cpu_place
  FROM hosts
), middles AS (
  SELECT name, n, min(CASE WHEN 2 * off_place >= n THEN off_ns END) AS off_ns,
         min(CASE WHEN 2 * wall_place >= n THEN wall_ns END) AS wall_ns,
         min(CASE WHEN 2 * cpu_place >= n THEN cpu_ns END) AS cpu_ns
  FROM placed_hosts GROUP BY name, n
), off AS (
  SELECT m.name, m.n, abs(h.off_ns - m.off_ns) AS deviation,
         row_number() OVER (PARTITION BY m.name ORDER BY abs(h.off_ns - m.off_ns)) AS place
  FROM hosts h JOIN middles m ON m.name = h.name
), spread AS (
  SELECT name, 1.4826e0 * min(CASE WHEN 2 * place >= n THEN deviation END) AS mad
  FROM off GROUP BY name
), scales AS (
  SELECT m.name, m.n, m.off_ns, m.wall_ns, m.cpu_ns,
         CASE WHEN s.mad > m.wall_ns / 1e2 THEN s.mad ELSE m.wall_ns / 1e2 END AS scale
  FROM middles m JOIN spread s ON s.name = m.name WHERE m.wall_ns > 0
)
SELECT h.host, h.name AS operation, h.ranks, round(h.off_ns / 1e3) / 1e3 AS off_cpu_ms,
       round(s.off_ns / 1e3) / 1e3 AS others_off_cpu_ms, round(h.wall_ns / 1e3) / 1e3 AS wall_ms,
       round(s.wall_ns / 1e3) / 1e3 AS others_wall_ms, round(h.cpu_ns / 1e3) / 1e3 AS cpu_ms,
       round(s.cpu_ns / 1e3) / 1e3 AS others_cpu_ms,
       round(1e1 * (h.off_ns - s.off_ns) / s.scale) / 1e1 AS scales
FROM hosts h JOIN scales s ON s.name = h.name
WHERE s.n >= 5 AND h.off_ns - s.off_ns > (6 + 8e1 / s.n) * s.scale
ORDER BY round(1e1 * (h.off_ns - s.off_ns) / s.scale) DESC, h.host, h.name
