// Reads the operations of a run's logs ahead of the thread that draws them.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_OPERATION_READER_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_OPERATION_READER_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/block_queue.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "model/calls/nesting_order.hpp"

namespace lotus::tool {

/// Reads all logs of a run, one after another, on a thread of its own, so that reading and drawing
/// use two CPUs. Reads only a few thousand operations ahead, so it needs little memory.
class operation_reader {
 public:
  /// Begins to read. `run` must outlive this object.
  explicit operation_reader(const run_files& run);
  operation_reader(const operation_reader&) = delete;
  operation_reader& operator=(const operation_reader&) = delete;
  ~operation_reader();

  /// Calls `on_operation(const operation&)` for the operations of the next log, in the log's order.
  /// Throws input_error if the log cannot be read.
  /// @param names  the names to which operation::name refers; names that it lacks are added.
  template <class OnOperation>
  void read_next_log(name_table& names, OnOperation&& on_operation) {
    std::vector<std::uint32_t> ids;  // for each name of the log, its id in `names`
    for (bool is_last = false; !is_last;) {
      const block& read = *blocks_.next();
      for (const std::string& name : read.new_names) ids.push_back(names.id_of_decoded(name));
      for (operation op : read.operations) {
        op.name = ids[op.name];
        on_operation(op);
      }
      is_last = read.is_last;
      blocks_.done();
    }
  }

 private:
  /// Some operations of a log. Their names are ids that count the names of this log.
  struct block {
    std::vector<operation> operations;
    std::vector<std::string> new_names;  // names that earlier blocks of the log do not contain
    bool is_last = false;                // whether this is the last block of the log
  };

  void read(const run_files& run);
  void read_log_into_blocks(const log_file& file);

  block_queue<block> blocks_{4};
  block filling_;
  std::thread thread_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_OPERATION_READER_HPP
