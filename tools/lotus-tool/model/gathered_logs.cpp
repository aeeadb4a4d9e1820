#include "model/gathered_logs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

void gathered_logs::take(std::size_t place, std::unique_ptr<log_data> log) {
  std::unique_lock<std::mutex> lock(mutex_);
  moved_.wait(lock, [this, place] { return place < next_ + most_ahead; });
  waiting_.emplace(place, std::move(log));
  for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_;
       at = waiting_.erase(at)) {
    if (!failure_) put(next_, *at->second);
    ++next_;
  }
  moved_.notify_all();
}

void gathered_logs::put(std::size_t place, log_data& log) {
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
  for (std::uint32_t n = 0; n < log.names.size(); ++n) {
    const std::uint32_t name = to_.names.id_of_decoded(log.names.name(n));
    to_.logs[place].names.push_back(name);
    if (n < log.ops.size()) add_op(place, name, log.ops[n]);
  }
  to_.logs[place].packed = std::move(log.packed);
}

void gathered_logs::add_op(std::size_t place, std::uint32_t name, log_op& op) {
  if (name >= to_.ops.size()) {
    to_.ops.resize(name + std::size_t{1});
    cpu_.resize(to_.ops.size());
  }
  op_samples& to = to_.ops[name];
  to.durations.add(std::move(op.durations));
  to.blocks.add(op.blocks);
  to.self_ns += op.self_ns;
  to.by_file.resize(place + 1);
  to.by_file[place] = op.share;
  if (op.share.count == 0) return;
  cpu_[name].sum += op.cpu;
  (side_.off_cpu[place].known() ? cpu_[name].known : cpu_[name].missing) = true;
}

batch_records gathered_logs::finish() {
  if (failure_) std::rethrow_exception(failure_);
  for (std::size_t name = 0; name < to_.ops.size(); ++name) {
    to_.ops[name].name = to_.names.name(static_cast<std::uint32_t>(name));
    if (cpu_[name].known && !cpu_[name].missing) to_.ops[name].cpu = cpu_[name].sum;
  }
  return std::move(records_);
}

}  // namespace lotus::tool
