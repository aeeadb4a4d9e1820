// Writes tables as a SQLite database.
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/text.hpp"
#include "commands/export/tables.hpp"

namespace lotus::tool {
namespace {

// SQLite needs half of the time for a row if a statement inserts eight. Larger numbers hardly help.
constexpr std::size_t rows_at_once = 8;

const char* sqlite_type(column_type type) {
  static constexpr const char* names[] = {" INTEGER", " REAL", " TEXT"};
  return names[static_cast<std::size_t>(type)];
}

/// Writes the database to a temporary file next to its final path; commit() renames the file.
class sqlite_sink : public row_sink {
 public:
  /// Throws input_error if the file cannot be created.
  sqlite_sink(std::string path, const std::vector<table_definition>& tables)
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
      const std::string columns = joined(table.columns, ", ", [](const auto& column) {
        return column.first + sqlite_type(column.second);
      });
      execute(std::string("CREATE TABLE ").append(table.name).append(" (" + columns + ")"));
      inserted_table& to = tables_.emplace_back();
      to.one = prepare(table, 1);
      to.many = prepare(table, rows_at_once);
    }
  }

  ~sqlite_sink() override {
    tables_.clear();
    database_.reset();
    if (!incomplete_.empty()) ::unlink(incomplete_.c_str());
    // When a process closes a descriptor of a file, it loses all its locks on the file, also those
    // of SQLite. So `lock_` is closed only after SQLite has closed the database.
    ::close(lock_);
  }

  void row(std::size_t table, const std::vector<cell>& cells) override {
    if (table != waiting_table_) insert_waiting();
    waiting_table_ = table;
    insertion& many = tables_[table].many;
    const std::size_t first = waiting_rows_++ * cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) many.bind(first + i, cells[i]);
    if (waiting_rows_ < rows_at_once) return;
    insert(many);
    waiting_rows_ = 0;
  }

  void commit() override {
    insert_waiting();
    execute("COMMIT");
    tables_.clear();
    database_.reset();
    if (std::rename(incomplete_.c_str(), path_.c_str()) != 0) {
      throw input_error(path_ + ": cannot be written: " + error_text(errno));
    }
    incomplete_.clear();
  }

 private:
  struct closer {
    void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };

  /// An INSERT statement for one or several rows of a table, with the values that are bound to it.
  struct insertion {
    std::unique_ptr<sqlite3_stmt, closer> statement;
    std::vector<cell> bound;         // read a text in `texts` instead: the view here may dangle
    std::vector<std::string> texts;  // copies of the bound texts, indexed like `bound`

    void bind(std::size_t at, const cell& value) {
      const int number = static_cast<int>(at) + 1;
      if (const auto* text = std::get_if<std::string_view>(&value)) {
        const bool is_bound = std::holds_alternative<std::string_view>(bound[at]);
        if (is_bound && texts[at] == *text) return;
        texts[at] = *text;
        sqlite3_bind_text(statement.get(), number, texts[at].data(), static_cast<int>(text->size()),
                          nullptr);  // null: SQLite does not copy the text
      } else if (const auto* real = std::get_if<double>(&value)) {
        sqlite3_bind_double(statement.get(), number, *real);
      } else if (value == bound[at]) {
        return;  // SQLite keeps the values of the last execution
      } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        sqlite3_bind_int64(statement.get(), number, *integer);
      } else {
        sqlite3_bind_null(statement.get(), number);
      }
      bound[at] = value;
    }
  };
  struct inserted_table {
    insertion one;   // inserts one row
    insertion many;  // inserts rows_at_once rows
  };

  insertion prepare(const table_definition& table, std::size_t rows) {
    const std::size_t columns = table.columns.size();
    std::string sql = std::string("INSERT INTO ").append(table.name).append(" VALUES ");
    for (std::size_t i = 0; i < rows * columns; ++i) {
      if (i % columns != 0) {
        sql += ", ?";
      } else {
        sql += i == 0 ? "(?" : "), (?";
      }
    }
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(database_.get(), sql.append(")").c_str(), -1, &statement, nullptr),
          SQLITE_OK);
    insertion prepared;
    prepared.statement.reset(statement);
    prepared.bound.resize(rows * columns);
    prepared.texts.resize(rows * columns);
    return prepared;
  }

  void insert(insertion& rows) {
    check(sqlite3_step(rows.statement.get()), SQLITE_DONE);
    sqlite3_reset(rows.statement.get());
  }

  void insert_waiting() {
    auto& [one, many] = tables_[waiting_table_];
    const std::size_t columns = one.bound.size();
    for (std::size_t i = 0; i < waiting_rows_ * columns; ++i) {
      const bool is_text = std::holds_alternative<std::string_view>(many.bound[i]);
      one.bind(i % columns, is_text ? cell(std::string_view(many.texts[i])) : many.bound[i]);
      if ((i + 1) % columns == 0) insert(one);
    }
    waiting_rows_ = 0;
  }

  void execute(const std::string& sql) {
    check(sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  }

  void check(int status, int wanted) const {
    if (status == wanted) return;
    throw input_error(path_ + ": cannot be written: " + sqlite3_errmsg(database_.get()));
  }

  std::string path_;
  std::string incomplete_;  // path of the database while it is incomplete
  int lock_ = -1;  // descriptor of a lock on the incomplete database, held while this process runs
  std::unique_ptr<sqlite3, closer> database_;
  std::vector<inserted_table> tables_;
  // The rows that are bound to inserted_table::many and not inserted yet, and their table.
  std::size_t waiting_rows_ = 0;
  std::size_t waiting_table_ = 0;
};

}  // namespace

std::unique_ptr<row_sink> make_sqlite_sink(std::string path,
                                           const std::vector<table_definition>& tables) {
  return std::make_unique<sqlite_sink>(std::move(path), tables);
}

}  // namespace lotus::tool
