// Tests lotus-tool export --format parquet: the files that DuckDB writes must contain the same data
// as the SQLite database.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Changes PATH until its destructor restores it.
class path_of_programs {
 public:
  explicit path_of_programs(const std::string& path) : before_(std::getenv("PATH")) {
    ::setenv("PATH", path.c_str(), 1);
  }
  path_of_programs(const path_of_programs&) = delete;
  path_of_programs& operator=(const path_of_programs&) = delete;
  ~path_of_programs() { ::setenv("PATH", before_.c_str(), 1); }

  /// Returns a PATH that begins with the folder of downloaded programs.
  static std::string with_engines() {
    return std::string(LOTUS_TEST_ENGINES "/bin:") + std::getenv("PATH");
  }

 private:
  std::string before_;
};

bool has_duckdb() {
  const bool found = std::system("duckdb --version >/dev/null 2>&1") == 0;
  if (!found) lotus_test::skip("duckdb is absent");
  return found;
}

void write_run(const temp_dir& dir) {
  dir.file(".lotus_info_1_a",
           "lotus 0.1.0\nhost Shere\npid 1\nparent 0\ncpu switches\nthread 1 Smain\n");
  thread_logs logs;
  logs.operation("Load%2C \"x\"%0A'y'", 10, 50);
  logs.operation("NULL", 70, 20);
  logs.off_cpu(80, 5, "1");
  logs.wait(0, 0, 120);
  logs.write(dir, "", 1);
  thread_logs unknown;  // an unknown process, so host, pid and rank are NULL
  unknown.operation("Alone", 5, 1);
  unknown.write(dir, "", 9);
}

result export_parquet(const temp_dir& dir, const std::string& folder) {
  return run({"export", dir.path(), "--format", "parquet", "-o", folder});
}

std::string query(const temp_dir& scratch, const std::string& sql) {
  const std::string out = scratch.path() + "/answer";
  const std::string text = scratch.file("query.sql", sql);
  const std::string command =
      "duckdb -init /dev/null -csv -noheader -nullvalue - :memory: <'" + text + "' >'" + out + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  return read_file(out);
}

/// Creates a shell script `duckdb` that accepts the query SELECT 1, and runs the shell command
/// `then` for every other query. Returns a PATH on which the script is found.
std::string false_duckdb(const temp_dir& dir, const std::string& then) {
  const std::string program = dir.file("bin/duckdb",
                                       "#!/bin/sh\ncase $5 in 'SELECT 1') exit 0;; "
                                       "esac\n" +
                                           then + '\n');
  REQUIRE(::chmod(program.c_str(), 0700) == 0);
  return dir.path() + "/bin:/usr/bin:/bin";
}

}  // namespace

TEST_CASE("export writes every table to Parquet with any names, and NULL differs from empty text") {
  const path_of_programs path(path_of_programs::with_engines());
  if (!has_duckdb()) return;
  const temp_dir dir;
  write_run(dir);
  const temp_dir to;
  const std::string folder = to.path() + "/it's \"a\" *[b]? 100%";
  const result r = export_parquet(dir, folder);
  INFO(r.err);
  REQUIRE(r.status == 0);
  const temp_dir plain;
  std::filesystem::copy(folder, plain.path());
  CHECK(plain.names() == std::vector<std::string>{"aggregated.parquet", "batches.parquet",
                                                  "blocked_on.parquet", "counters.parquet",
                                                  "runs.parquet", "spans.parquet",
                                                  "stages.parquet"});
  const std::string spans = "from '" + plain.path() + "/spans.parquet' ";
  CHECK(
      query(to, "select replace(name, chr(10), '<br>'), host, rank, thread, loader = '', cpu_ns " +
                    spans + "order by start_ns") ==
      "Alone,-,-,-,true,-\n"
      "\"Load, \"\"x\"\"<br>'y'\",here,-,main,true,50000000\n"
      "NULL,here,-,main,true,15000000\n");
  CHECK(query(to, "select count(*), sum(wait_ns) from '" + plain.path() + "/batches.parquet'") ==
        "1,120000000\n");
  CHECK(query(to, "select column_name || ' ' || column_type from (describe " + spans +
                      ") where column_name in ('name', 'dur_ns')") ==
        "name VARCHAR\ndur_ns BIGINT\n");
  // Exports again, over the existing files.
  CHECK(export_parquet(dir, folder).status == 0);
}

TEST_CASE("without duckdb, export says how to get it and leaves no files") {
  const temp_dir dir;
  write_run(dir);
  const temp_dir to;
  const path_of_programs path(to.path());
  const result r = export_parquet(dir, to.path() + "/tables");
  CHECK(r.status == 1);
  CHECK(contains(r.err, "pip install duckdb-cli"));
  CHECK(std::filesystem::is_empty(to.path() + "/tables"));
}

TEST_CASE("export reports DuckDB's error and leaves existing files unchanged") {
  const temp_dir dir;
  write_run(dir);
  const temp_dir to;
  const std::string old = to.file("tables/spans.parquet", "old");
  const path_of_programs path(false_duckdb(to, "echo disk >&2; echo ' is  full' >&2; exit 3"));
  const result r = export_parquet(dir, to.path() + "/tables");
  CHECK(r.status == 1);
  CHECK(contains(r.err, "duckdb ended with 3: disk is full\n"));
  CHECK(read_file(old) == "old");
  CHECK(std::filesystem::remove(old));
  CHECK(std::filesystem::is_empty(to.path() + "/tables"));
}

TEST_CASE("Parquet keeps names unchanged, even those that would be formulas in a spreadsheet") {
  const path_of_programs path(path_of_programs::with_engines());
  if (!has_duckdb()) return;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_2", "S=1+1,1000,1\nS'quoted,2000,1\n");
  const temp_dir to;
  REQUIRE(export_parquet(dir, to.path() + "/tables").status == 0);
  CHECK(query(to, "select count(*) from '" + to.path() +
                      "/tables/spans.parquet' where name in ('=1+1', '''quoted')") == "2\n");
}
