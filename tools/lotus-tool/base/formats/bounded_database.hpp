// Opens an untrusted SQLite database for reading, within limits of time, memory and actions.
#ifndef LOTUS_TOOL_BASE_FORMATS_BOUNDED_DATABASE_HPP
#define LOTUS_TOOL_BASE_FORMATS_BOUNDED_DATABASE_HPP

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lotus::tool {

struct close_database {
  void operator()(sqlite3* of) const noexcept { sqlite3_close(of); }
};
struct end_statement {
  void operator()(sqlite3_stmt* of) const noexcept { sqlite3_finalize(of); }
};
using statement_pointer = std::unique_ptr<sqlite3_stmt, end_statement>;

/// A database in which statements can only read tables, and end with SQLITE_INTERRUPT when the time
/// is over: a view can be recursive without end. Not thread-safe.
class bounded_database {
 public:
  /// @param max_time  the time in which all statements must end.
  /// @param max_memory_bytes  memory of SQLite in this process; sorting may then not use the disk
  /// instead. 0: unlimited.
  bounded_database(const std::string& path, std::chrono::seconds max_time,
                   std::int64_t max_memory_bytes = 0)
      : deadline_(std::chrono::steady_clock::now() + max_time) {
    sqlite3* opened = nullptr;
    status_ = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    if (status_ != SQLITE_OK) return;
    if (max_memory_bytes != 0) {
      sqlite3_exec(opened, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);
      sqlite3_hard_heap_limit64(max_memory_bytes);
    }
    constexpr int steps_between = 10'000;
    sqlite3_progress_handler(opened, steps_between, is_late, &deadline_);
    constexpr int max_value_bytes = 1'000'000;
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, max_value_bytes);
    sqlite3_set_authorizer(opened, allow_reading, nullptr);
  }
  bounded_database(const bounded_database&) = delete;
  bounded_database& operator=(const bounded_database&) = delete;
  ~bounded_database() = default;

  sqlite3* get() const noexcept { return database_.get(); }
  int status() const noexcept { return status_; }  ///< SQLITE_OK, or why it could not be opened

 private:
  /// Callback of SQLite that allows a statement to read tables and to call functions. Everything
  /// else is denied, including actions that later versions of SQLite may add.
  static int allow_reading(void* /*self*/, int action, const char* name, const char* function,
                           const char* /*database*/, const char* /*view*/) {
    const std::string_view called = function == nullptr ? "" : function;
    const std::string_view object = name == nullptr ? "" : name;
    switch (action) {
      case SQLITE_FUNCTION:
        return called == "load_extension" || called == "fts3_tokenizer" ? SQLITE_DENY : SQLITE_OK;
      case SQLITE_PRAGMA:
        return object == "table_info" ? SQLITE_OK : SQLITE_DENY;
      case SQLITE_UPDATE:
        // pragma_table_info() asks for this. The database is read-only nevertheless.
        return object == "sqlite_master" ? SQLITE_OK : SQLITE_DENY;
      case SQLITE_SELECT:
      case SQLITE_READ:
      case SQLITE_RECURSIVE:
        return SQLITE_OK;
      default:
        return SQLITE_DENY;
    }
  }

  static int is_late(void* deadline) {
    const auto at = *static_cast<std::chrono::steady_clock::time_point*>(deadline);
    return std::chrono::steady_clock::now() > at ? 1 : 0;
  }

  std::chrono::steady_clock::time_point deadline_;
  std::unique_ptr<sqlite3, close_database> database_;
  int status_ = SQLITE_OK;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FORMATS_BOUNDED_DATABASE_HPP
