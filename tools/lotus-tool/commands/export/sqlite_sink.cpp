#include "commands/export/sqlite_sink.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "commands/export/row_sink.hpp"

namespace lotus::tool {
namespace {

const char* sqlite_type(column_type type) {
  switch (type) {
    case column_type::integer:
      return " INTEGER";
    case column_type::real:
      return " REAL";
    case column_type::text:
      break;
  }
  return " TEXT";
}

}  // namespace

sqlite_sink::sqlite_sink(std::string path, const std::vector<table_definition>& tables)
    : path_(std::move(path)) {
  const new_output created = open_new_output(path_);
  lock_ = created.descriptor;
  if (created.incomplete.empty()) {
    ::close(lock_);
    throw input_error(path_ + ": a database cannot be written to standard output");
  }
  incomplete_ = created.incomplete;
  sqlite3* database = nullptr;
  // Only one thread uses the database, so SQLite need not lock a mutex for each value.
  const int opened =
      sqlite3_open_v2(incomplete_.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  check(opened, SQLITE_OK);
  // No journal is needed, because other programs read the database only after it is complete.
  execute("PRAGMA journal_mode = OFF");
  execute("PRAGMA synchronous = OFF");
  execute("PRAGMA locking_mode = EXCLUSIVE");
  execute("BEGIN");
  for (const table_definition& table : tables) {
    std::string columns;
    std::string placeholders;
    for (const auto& [name, type] : table.columns) {
      columns += (columns.empty() ? "" : ", ") + std::string(name) + sqlite_type(type);
      placeholders += placeholders.empty() ? "?" : ", ?";
    }
    execute(std::string("CREATE TABLE ").append(table.name).append(" (" + columns + ")"));
    sqlite3_stmt* insert = nullptr;
    const std::string sql =
        std::string("INSERT INTO ").append(table.name).append(" VALUES (" + placeholders + ")");
    check(sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &insert, nullptr), SQLITE_OK);
    inserts_.emplace_back(insert);
    bound_.emplace_back(table.columns.size());
  }
}

sqlite_sink::~sqlite_sink() {
  inserts_.clear();
  database_.reset();
  if (!incomplete_.empty()) ::unlink(incomplete_.c_str());
  // When a process closes a descriptor of a file, it loses all its locks on the file, also those
  // of SQLite. So `lock_` is closed only after SQLite has closed the database.
  ::close(lock_);
}

void sqlite_sink::row(std::size_t table, const std::vector<cell>& cells) {
  sqlite3_stmt* insert = inserts_[table].get();
  std::vector<cell>& bound = bound_[table];
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    if (const auto* text = std::get_if<std::string_view>(&cells[i])) {
      sqlite3_bind_text(insert, at, text->data(), static_cast<int>(text->size()),
                        nullptr);  // null: SQLite does not copy the text
    } else if (const auto* real = std::get_if<double>(&cells[i])) {
      sqlite3_bind_double(insert, at, *real);
    } else if (cells[i] == bound[i]) {
      continue;  // SQLite keeps the values of the last row
    } else if (const auto* number = std::get_if<std::int64_t>(&cells[i])) {
      sqlite3_bind_int64(insert, at, *number);
    } else {
      sqlite3_bind_null(insert, at);
    }
    bound[i] = cells[i];
  }
  check(sqlite3_step(insert), SQLITE_DONE);
  sqlite3_reset(insert);
}

void sqlite_sink::commit() {
  execute("COMMIT");
  inserts_.clear();
  database_.reset();
  if (std::rename(incomplete_.c_str(), path_.c_str()) != 0) {
    throw input_error(path_ + ": cannot be written: " + std::strerror(errno));
  }
  incomplete_.clear();
}

void sqlite_sink::execute(const std::string& sql) {
  check(sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
}

void sqlite_sink::check(int status, int wanted) const {
  if (status == wanted) return;
  throw input_error(path_ + ": cannot be written: " + sqlite3_errmsg(database_.get()));
}

}  // namespace lotus::tool
