#include "commands/mcp/sql_query.hpp"

#include <sqlite3.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_rows = 1000;
constexpr std::size_t max_bytes = 200'000;
constexpr int max_value_bytes = 1'000'000;
constexpr std::chrono::seconds max_time{10};

struct close_database {
  void operator()(sqlite3* of) const noexcept { sqlite3_close(of); }
};
struct end_statement {
  void operator()(sqlite3_stmt* of) const noexcept { sqlite3_finalize(of); }
};
using database_pointer = std::unique_ptr<sqlite3, close_database>;
using statement_pointer = std::unique_ptr<sqlite3_stmt, end_statement>;

/// Callback of SQLite that allows a query to read tables and to call functions. Everything else is
/// denied, including actions that later versions of SQLite may add.
int allow_reading(void*, int action, const char*, const char* function, const char*, const char*) {
  if (action == SQLITE_FUNCTION) {
    const std::string_view name = function == nullptr ? "" : function;
    return name == "load_extension" ? SQLITE_DENY : SQLITE_OK;
  }
  const bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE;
  return reads ? SQLITE_OK : SQLITE_DENY;
}

int is_late(void* deadline) {
  const auto at = *static_cast<std::chrono::steady_clock::time_point*>(deadline);
  return std::chrono::steady_clock::now() > at ? 1 : 0;
}

[[noreturn]] void fail(sqlite3* database, int code) {
  if (code == SQLITE_INTERRUPT) throw input_error("the query took longer than 10 s");
  throw input_error(database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database));
}

statement_pointer prepared(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* first = nullptr;
  const char* rest = nullptr;
  const int code =
      sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &first, &rest);
  statement_pointer statement(first);
  if (code != SQLITE_OK) fail(database, code);
  if (statement == nullptr) throw input_error("the query is empty");
  sqlite3_stmt* second = nullptr;
  const int next = sqlite3_prepare_v2(database, rest, -1, &second, nullptr);
  const statement_pointer other(second);
  if (next != SQLITE_OK || other != nullptr) throw input_error("only one statement is allowed");
  return statement;
}

void write_value(sqlite3_stmt* row, int column, json_writer& to) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      to.value(static_cast<std::int64_t>(sqlite3_column_int64(row, column)));
      break;
    case SQLITE_FLOAT:
      to.value(sqlite3_column_double(row, column));
      break;
    case SQLITE_NULL:
      to.value(nullptr);
      break;
    default: {  // SQLITE_TEXT and SQLITE_BLOB
      const void* const bytes = sqlite3_column_blob(row, column);
      const auto n = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
      to.value(bytes == nullptr ? std::string() : printable({static_cast<const char*>(bytes), n}));
    }
  }
}

}  // namespace

std::string query_database(const std::string& path, const std::string& sql) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const database_pointer database(opened);
  if (code != SQLITE_OK) fail(opened, code);
  auto deadline = std::chrono::steady_clock::now() + max_time;
  constexpr int steps_between = 10'000;
  sqlite3_progress_handler(opened, steps_between, is_late, &deadline);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, max_value_bytes);
  sqlite3_set_authorizer(opened, allow_reading, nullptr);
  const statement_pointer statement = prepared(opened, sql);
  std::string text;
  json_writer to(text);
  to.begin_object().key("columns").begin_array();
  const int columns = sqlite3_column_count(statement.get());
  for (int c = 0; c < columns; ++c) to.value(printable(sqlite3_column_name(statement.get(), c)));
  to.end_array().key("rows").begin_array();
  bool truncated = false;
  for (std::size_t rows = 0;; ++rows) {
    const int step = sqlite3_step(statement.get());
    if (step == SQLITE_DONE) break;
    if (step != SQLITE_ROW) fail(opened, step);
    truncated = rows == max_rows || text.size() > max_bytes;
    if (truncated) break;
    to.newline().begin_array();
    for (int c = 0; c < columns; ++c) write_value(statement.get(), c, to);
    to.end_array();
  }
  to.end_array().member("truncated", truncated).end_object();
  return text;
}

}  // namespace lotus::tool
