-- Defines the tables in FOLDER and its subfolders as views: spark-sql --hivevar tables=FOLDER -i.
CREATE TEMPORARY VIEW runs USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'runs.parquet');
CREATE TEMPORARY VIEW spans USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'spans.parquet');
CREATE TEMPORARY VIEW batches USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'batches.parquet');
CREATE TEMPORARY VIEW stages USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'stages.parquet');
CREATE TEMPORARY VIEW counters USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'counters.parquet');
CREATE TEMPORARY VIEW aggregated USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'aggregated.parquet');
CREATE TEMPORARY VIEW blocked_on USING parquet OPTIONS (
  path '${tables}', recursiveFileLookup 'true', pathGlobFilter 'blocked_on.parquet');
