// Defines the functions of thread_recorder that turn what it recorded into thread_samples.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sampling/read/variable_names.hpp"
#include "threads/record/recorder_clocks.hpp"
#include "threads/record/thread_recorder.hpp"
#include "threads/unwind/stack_unwinder.hpp"

namespace lotus::tool {
namespace {

using std::chrono::milliseconds;

/// Assigns numbers to values, so that equal values have the same number. New values are appended to
/// a vector.
template <class Value>
class numbered {
 public:
  explicit numbered(std::vector<Value>& all) : all_(all) {}
  template <class Key>
  std::uint32_t number(const Key& key, Value value) {
    const auto [at, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.push_back(std::move(value));
    return at->second;
  }

 private:
  std::vector<Value>& all_;
  std::map<std::conditional_t<std::is_same_v<Value, code_offset>,
                              std::pair<std::uint32_t, std::uint64_t>, Value>,
           std::uint32_t>
      known_;
};

}  // namespace

thread_recorder::wait_key thread_recorder::key_of(const raw_sample& wait) noexcept {
  return {wait.of.thread, wait.of.reason, wait.of.address, wait.stack.pc, wait.stack.sp};
}

/// Sets the counts of the selected samples so that each also represents equal samples that were
/// counted but not selected.
void thread_recorder::count_unselected_waits() {
  std::map<wait_key, std::uint64_t> selected;
  for (const raw_sample& wait : waiting_.all()) ++selected[key_of(wait)];
  std::map<wait_key, std::uint64_t> done;
  for (raw_sample& wait : waiting_.all()) {
    const wait_key key = key_of(wait);
    const auto counted = counted_waits_.find(key);
    if (counted == counted_waits_.end()) continue;
    // Use differences of rounded sums, so that the counts of equal waits add up exactly.
    const std::uint64_t all = selected[key];
    const std::uint64_t before = done[key]++;
    const std::uint64_t count = counted->second.count;
    wait.of.count = count * (before + 1) / all - count * before / all;
  }
  // The selected CPU samples represent all CPU samples.
  const std::uint64_t kept = running_.all().size();
  for (std::uint64_t i = 0; i < kept; ++i) {
    running_.all()[i].of.count = running_.seen() * (i + 1) / kept - running_.seen() * i / kept;
  }
}

/// Returns the name of the global variable at an address of an image; "" if there is none.
std::string thread_recorder::variable_at(const image& of, std::uint64_t address,
                                         variable_names& names) {
  const mapped_code* module = nullptr;  // the last one that begins before the address
  for (const mapped_code& part : of.code) {
    const bool is_later = module == nullptr || part.file_begin > module->file_begin;
    if (part.file_begin <= address && is_later) module = &part;
  }
  return module == nullptr ? std::string() : names.find(module->path, address - module->file_begin);
}

/// Adds the rounds to the result.
/// @param sample_of_wait  for each of counted_waits_: index in to.samples, or -1 if its stack was
/// not selected.
void thread_recorder::add_rounds(const std::vector<std::int32_t>& sample_of_wait,
                                 thread_samples& to) {
  for (sampled_round& round : kept_rounds_) {
    for (sampled_round::state& one : round.states) {
      if (one.sample < 0) continue;
      const std::int32_t sample = sample_of_wait[static_cast<std::size_t>(one.sample)];
      one.sample = sample < 0 ? sampled_round::waits_unknown : sample;
    }
    to.rounds.push_back(std::move(round));
  }
  std::stable_sort(
      to.rounds.begin(), to.rounds.end(),
      [](const sampled_round& a, const sampled_round& b) { return a.at_ms < b.at_ms; });
}

thread_samples thread_recorder::result() {
  if (cpu_.works()) drain();
  thread_samples to;
  const clock::time_point now = clock::now();
  const double time_s = std::max(1e-9, seconds(now - begun_));
  to.interval_ns = cpu_.works() ? cpu_interval_ns : 0;
  to.wait_samples_per_s = static_cast<double>(wait_samples_) / time_s;
  to.cost = static_cast<double>(own_cpu_ns() - cpu_at_begin_ns_) * 1e-9 / time_s;
  to.late_s = rounds_ == 0 ? 0 : late_s_ / static_cast<double>(rounds_);
  to.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  std::vector<std::unique_ptr<stack_unwinder>> unwinders(images_.size());
  for (std::size_t i = 0; i < images_.size(); ++i) {
    unwinders[i] = std::make_unique<stack_unwinder>(images_[i].code);
  }
  numbered<std::string> modules(to.modules);
  numbered<code_offset> places(to.places);
  numbered<sampled_stack> stacks(to.stacks);
  std::map<std::tuple<std::uint32_t, bool, int, std::uint64_t, std::uint32_t, std::string,
                      std::uint32_t>,
           std::size_t>
      known;
  variable_names variables;
  std::map<std::pair<std::size_t, std::uint64_t>, std::string> locks;  // by image and address
  // The address of a socket's other end says more than the socket's number.
  const auto name_peer = [this](std::string& what) {
    const auto name = names_of_peers_.find(what);
    if (name != names_of_peers_.end()) what = name->second;
  };
  count_unselected_waits();
  std::vector<std::int32_t> sample_of_wait(counted_waits_.size(), -1);
  for (reservoir* const from : {&running_, &waiting_}) {
    for (raw_sample& raw : from->all()) {
      if (threads_[raw.of.thread].own) continue;
      name_peer(raw.of.what);
      if (raw.of.reason == lotus::detail::wait_reason::lock && raw.of.address != 0) {
        const auto [lock, is_new] = locks.try_emplace({raw.image, raw.of.address});
        if (is_new) lock->second = variable_at(images_[raw.image], raw.of.address, variables);
        raw.of.what = lock->second;
      }
      stack_unwinder& unwinder = *unwinders[raw.image];
      sampled_stack stack;
      for (const std::uint64_t address : unwinder.unwind(raw.stack)) {
        const mapped_code* const code = unwinder.find(address);
        if (code == nullptr) continue;
        const std::uint32_t module = modules.number(code->path, code->path);
        to.builds.resize(to.modules.size());
        if (to.builds[module].empty()) to.builds[module] = code->build;
        const std::uint64_t offset = address - code->begin + code->file_offset;
        stack.push_back(places.number(std::pair(module, offset), code_offset{module, offset}));
      }
      raw.of.stack = stacks.number(stack, stack);
      const auto [at, is_new] =
          known.try_emplace({raw.of.thread, raw.of.waits, static_cast<int>(raw.of.reason),
                             raw.of.address, raw.of.holder, raw.of.channel(), raw.of.stack},
                            to.samples.size());
      if (is_new) {
        to.samples.push_back(raw.of);
      } else {
        thread_sample& same = to.samples[at->second];
        same.count += raw.of.count;
        same.at_ms.insert(same.at_ms.end(), raw.of.at_ms.begin(), raw.of.at_ms.end());
      }
      const auto counted = raw.of.waits ? counted_waits_.find(key_of(raw)) : counted_waits_.end();
      if (counted != counted_waits_.end()) {
        sample_of_wait[static_cast<std::size_t>(counted->second.index)] =
            static_cast<std::int32_t>(at->second);
      }
      raw.stack = {};
    }
  }
  std::vector<std::string*> lock_names;
  for (thread_sample& s : to.samples) {
    if (s.reason == lotus::detail::wait_reason::lock) lock_names.push_back(&s.what);
  }
  variable_names::drop_distances(lock_names);
  add_rounds(sample_of_wait, to);
  for (const auto& [key, end] : ends_) {
    to.ends.push_back(end);
    name_peer(to.ends.back().what);
  }
  to.duration_ns = since_begin(now);
  to.cpus = cpus_;
  to.more_threads = more_threads_;
  if (start_ == sampling_start::at_exec) {
    to.all_cpu_ns = children_cpu_ns() - children_at_begin_ns_;
  }
  for (const auto& [pid, of] : processes_) to.processes.push_back({pid, of.program});
  for (thread& t : threads_) {
    // A thread of the Lotus library is recognized by its name, so it may have been sampled before
    // it had this name. Discard the counts of these samples.
    if (t.own) t.of.wait_samples = t.of.waits = t.of.span_ns = t.of.started_ns = t.of.ended_ns = 0;
    constexpr auto long_ago = milliseconds(300);
    if (t.of.ended_ns == 0 && now - t.seen > long_ago) t.of.ended_ns = since_begin(t.seen);
    to.threads.push_back(std::move(t.of));
  }
  return to;
}

}  // namespace lotus::tool
