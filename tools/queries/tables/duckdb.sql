-- Defines the tables in the folder 'tables' and its subfolders as views, for duckdb -init.
CREATE VIEW runs AS FROM 'tables/**/runs.parquet';
CREATE VIEW spans AS FROM 'tables/**/spans.parquet';
CREATE VIEW batches AS FROM 'tables/**/batches.parquet';
CREATE VIEW stages AS FROM 'tables/**/stages.parquet';
CREATE VIEW counters AS FROM 'tables/**/counters.parquet';
CREATE VIEW aggregated AS FROM 'tables/**/aggregated.parquet';
CREATE VIEW blocked_on AS FROM 'tables/**/blocked_on.parquet';
