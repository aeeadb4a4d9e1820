#include "commands/mcp/sql_query.hpp"

#include <sqlite3.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/errors.hpp"
#include "base/formats/bounded_database.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_rows = 1000;
constexpr std::size_t max_bytes = 200'000;
/// A query that needs more memory, such as for sorting, fails; it may not use the disk instead.
constexpr std::int64_t max_memory_bytes = std::int64_t{200} << 20;
constexpr std::chrono::seconds max_time{10};

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
  const bounded_database database(path, max_time, max_memory_bytes);
  sqlite3* const opened = database.get();
  if (database.status() != SQLITE_OK) fail(opened, database.status());
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
