#include "model/gathered_logs.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace lotus::tool {

void gathered_logs::take(std::size_t index, std::unique_ptr<log_data> log) {
  std::unique_lock<std::mutex> lock(mutex_);
  moved_.wait(lock, [this, index] { return index < next_ + max_ahead; });
  waiting_.emplace(index, std::move(log));
  for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_;
       at = waiting_.erase(at)) {
    if (!failure_) put(next_, *at->second);
    ++next_;
  }
  moved_.notify_all();
}

void gathered_logs::put(std::size_t index, log_data& log) {
  diagnostics_.absorb(log.text.str(), log.diagnostics);
  to_.damaged_lines += log.diagnostics.malformed_lines();
  if (log.failure) {
    failure_ = log.failure;
    return;
  }
  records_.insert(records_.end(), log.records.begin(), log.records.end());
  to_.operations += log.operations;
  to_.first_ns = std::min(to_.first_ns, log.first_ns);
  to_.last_ns = std::max(to_.last_ns, log.last_ns);
  const std::size_t count = log.names.size();
  std::vector<std::uint32_t>& names = to_.logs[index].names;
  names.resize(count);
  if (to_.names.size() == 0) {
    to_.names = std::move(log.names);
    std::iota(names.begin(), names.end(), 0U);
  } else {
    for (std::uint32_t n = 0; n < count; ++n) {
      names[n] = to_.names.id_of_decoded(log.names.name(n));
    }
  }
  for (std::uint32_t n = 0; n < count && !log.ops.empty(); ++n) {
    add_op(index, names[n], n, log);
    log.ops.pop_front();  // frees memory that the operations of the run can use
  }
  to_.logs[index].packed = std::move(log.packed);
}

void gathered_logs::add_op(std::size_t index, std::uint32_t name, std::uint32_t name_in_log,
                           log_data& log) {
  while (name >= to_.ops.size()) to_.ops.emplace_back();
  log_op& op = log.ops.front();
  op_samples& to = to_.ops[name];
  to.durations.add(std::move(op.durations));
  if (name_in_log < log.blocks.size()) {
    to.change_details().blocks.add(log.blocks[name_in_log]);
  }
  to.self_ns += op.self_ns;
  to.by_file.set(index, op.share);
  if (op.share.count == 0) return;
  if (name >= cpu_missing_.size()) cpu_missing_.resize(to_.ops.size());
  if (!side_.off_cpu[index].known()) {
    cpu_missing_[name] = true;
  } else if (name_in_log < log.cpu.size()) {
    std::optional<cpu_split>& sum = to.change_details().cpu;
    if (!sum) sum = cpu_split{0, 0, 0};
    *sum += log.cpu[name_in_log];
  }
}

batch_records gathered_logs::finish() {
  if (failure_) std::rethrow_exception(failure_);
  for (std::size_t name = 0; name < to_.ops.size(); ++name) {
    op_samples& op = to_.ops[name];
    op.name = to_.names.name(static_cast<std::uint32_t>(name));
    const bool missing = name < cpu_missing_.size() && cpu_missing_[name];
    if (missing && op.details().cpu) op.change_details().cpu.reset();
  }
  return std::move(records_);
}

}  // namespace lotus::tool
