// Writes the rows of tables on a thread of its own.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_BACKGROUND_SINK_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_BACKGROUND_SINK_HPP

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/block_queue.hpp"
#include "commands/export/row_sink.hpp"

namespace lotus::tool {

/// Copies rows and passes them to another sink on a second thread, so that reading a run and
/// writing its tables use two CPUs. If the other sink throws, row() or commit() rethrows.
class background_sink : public row_sink {
 public:
  /// @param sink  is used by one thread at a time, but not always by the same one.
  explicit background_sink(std::unique_ptr<row_sink> sink);
  ~background_sink() override;
  void row(std::size_t table, const std::vector<cell>& cells) override;
  void commit() override;

 private:
  struct table_row {
    std::size_t table;
    std::vector<cell> cells;
  };
  /// Some rows; only the first `used` are valid. The others keep their memory for later rows.
  struct block {
    std::vector<table_row> rows;
    std::size_t used = 0;
    // The texts of all cells. Not reallocated while `used` > 0, because the cells refer to it.
    std::string texts;
  };

  void write_blocks();
  void pass_on();
  void end();

  std::unique_ptr<row_sink> sink_;
  block_queue<block> blocks_{4};
  block filling_;
  std::thread writer_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_BACKGROUND_SINK_HPP
