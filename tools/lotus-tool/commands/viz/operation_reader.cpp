#include "commands/viz/operation_reader.hpp"

#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"
#include "model/calls/nesting_order.hpp"

namespace lotus::tool {
namespace {

// A block of this many operations fits into the L2 cache, and is read and drawn in about 0.2 ms,
// which is much longer than it takes to wake a thread.
constexpr std::size_t block_operations = 4096;

/// Ends the thread when its results are no longer needed.
struct not_needed {};

}  // namespace

operation_reader::operation_reader(const run_files& run) : thread_([this, &run] { read(run); }) {}

operation_reader::~operation_reader() {
  blocks_.fail(std::make_exception_ptr(not_needed()));
  thread_.join();
}

void operation_reader::read(const run_files& run) {
  try {
    for (const log_file& file : run.files) read_log_into_blocks(file);
  } catch (...) {
    blocks_.fail(std::current_exception());
  }
}

void operation_reader::read_log_into_blocks(const log_file& file) {
  name_table names;
  const auto pass_on = [this](bool is_last) {
    filling_.is_last = is_last;
    filling_ = blocks_.push(std::move(filling_));
    filling_.operations.clear();
    filling_.new_names.clear();
  };
  read_log(file, nullptr, [&](const log_line& line) {
    if (line.kind != record_kind::op) return;
    const std::size_t known = names.size();
    // The numbers are written to their place: a copy would wait until they are in memory.
    operation& op = filling_.operations.emplace_back();
    op.start_ns = line.start_ns;
    op.duration_ns = line.duration_ns;
    op.name = names.id(line.name);
    if (names.size() > known) filling_.new_names.emplace_back(names.name(op.name));
    if (filling_.operations.size() == block_operations) pass_on(false);
  });
  pass_on(true);
}

}  // namespace lotus::tool
