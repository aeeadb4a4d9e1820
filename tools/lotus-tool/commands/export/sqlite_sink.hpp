// Writes tables as a SQLite database.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_SQLITE_SINK_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_SQLITE_SINK_HPP

#include <sqlite3.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "commands/export/row_sink.hpp"

namespace lotus::tool {

/// Writes the database to a temporary file next to its final path; commit() renames the file.
class sqlite_sink : public row_sink {
 public:
  /// Throws input_error if the file cannot be created.
  sqlite_sink(std::string path, const std::vector<table_definition>& tables);
  ~sqlite_sink() override;
  void row(std::size_t table, const std::vector<cell>& cells) override;
  void commit() override;

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

    void bind(std::size_t at, const cell& value);
  };
  struct inserted_table {
    insertion one;   // inserts one row
    insertion many;  // inserts rows_at_once rows
  };

  insertion prepare(const table_definition& table, std::size_t rows);
  void insert(insertion& rows);
  void insert_waiting();
  void execute(const std::string& sql);
  void check(int status, int wanted) const;

  std::string path_;
  std::string incomplete_;  // path of the database while it is incomplete
  int lock_ = -1;  // descriptor of a lock on the incomplete database, held while this process runs
  std::unique_ptr<sqlite3, closer> database_;
  std::vector<inserted_table> tables_;
  // The rows that are bound to inserted_table::many and not inserted yet, and their table.
  std::size_t waiting_rows_ = 0;
  std::size_t waiting_table_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_SQLITE_SINK_HPP
