#include "threads/record/thread_recorder.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "threads/unwind/stack_unwinder.hpp"

namespace lotus::tool {
namespace {

using std::chrono::milliseconds;

/// The mean CPU time of a thread between two of its samples.
constexpr std::uint64_t cpu_interval_ns = 1'000'000'000 / 99;
/// Maximum CPU time per second, in seconds, for taking wait samples.
constexpr double budget_of_waits = 0.004;
constexpr std::size_t samples_per_round = 8;
constexpr double min_pause_s = 0.004;

std::uint64_t own_cpu_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

double seconds(std::chrono::steady_clock::duration time) noexcept {
  return std::chrono::duration<double>(time).count();
}

/// Gives this thread a higher priority, so that it runs as soon as its pause ends. On a busy
/// machine, it would otherwise only run when a thread of the program begins to wait, and would
/// sample the beginnings of short waits too often. Has no effect for users without privileges.
void ask_for_punctual_wakeups() noexcept {
  constexpr int nice = -10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice);
}

std::chrono::steady_clock::duration of_seconds(double time) noexcept {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(time));
}

bool is_name_of_library_thread(const std::string& name) {
  return name == "lotus-drain" || name == "lotus-waits" || name == "lotus-sampler";
}

/// Returns the threads of a process and of all its descendants.
std::vector<pid_t> threads_below(pid_t pid) {
  std::vector<pid_t> all;
  std::vector<std::uint32_t> left{static_cast<std::uint32_t>(pid)};
  for (std::size_t i = 0; i < left.size(); ++i) {
    const watched_process process(left[i]);
    for (const std::uint32_t tid : process.threads()) all.push_back(static_cast<pid_t>(tid));
    for (const std::uint32_t child : process.children()) left.push_back(child);
  }
  return all;
}

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

thread_recorder::raw_sample* thread_recorder::reservoir::next(std::mt19937_64& random) {
  ++seen_;
  if (kept_.size() < capacity) {
    if (kept_.empty()) kept_.reserve(capacity);  // so that the returned pointers stay valid
    kept_.emplace_back();
    return &kept_.back();
  }
  const std::uint64_t place = std::uniform_int_distribution<std::uint64_t>(0, seen_ - 1)(random);
  return place < capacity ? &kept_[static_cast<std::size_t>(place)] : nullptr;
}

thread_recorder::thread_recorder(pid_t pid, sampling_start start)
    : cpu_(start == sampling_start::now ? threads_below(pid) : std::vector<pid_t>{pid},
           cpu_interval_ns, start),
      random_(static_cast<std::uint64_t>(clock::now().time_since_epoch().count())),
      begun_(clock::now()),
      next_round_(begun_ + milliseconds(3)),
      next_list_(begun_),
      next_interval_(begun_),
      next_children_(begun_ + milliseconds(50)),
      cpu_at_begin_ns_(own_cpu_ns()) {
  const auto number = static_cast<std::uint32_t>(pid);
  find_process(number);
  thread_index(number, number);
  ask_for_punctual_wakeups();
}

thread_recorder::~thread_recorder() = default;

/// Returns the data that is kept about a process. Creates it if the process is new.
thread_recorder::process& thread_recorder::find_process(std::uint32_t pid, std::uint32_t parent) {
  const auto [at, is_new] = processes_.try_emplace(pid);
  process& found = at->second;
  if (is_new) {
    found.watched.emplace(pid);
    found.image = images_.size();
    const auto from = processes_.find(parent);
    const bool is_fork = from != processes_.end();
    images_.push_back(
        {pid, is_fork ? images_[from->second.image].code : std::vector<mapped_code>{}});
    if (is_fork) found.program = from->second.program;
  }
  return found;
}

std::size_t thread_recorder::thread_index(std::uint32_t pid, std::uint32_t tid) {
  const auto [at, is_new] = index_of_.try_emplace({pid, tid}, threads_.size());
  if (is_new) {
    threads_.emplace_back();
    threads_.back().of.pid = pid;
    threads_.back().of.tid = tid;
  }
  return at->second;
}

/// Reads the list of mapped code of a process again if it may have changed.
void thread_recorder::refresh_code(process& of) {
  const clock::time_point now = clock::now();
  const bool is_due = now - of.read_code_at >= of.read_code_after;
  if (!is_due && !(of.mapped && now - of.read_code_at >= milliseconds(20))) return;
  std::vector<mapped_code> code = of.watched->code();
  if (code.empty()) return;
  of.mapped = false;
  of.read_code_at = now;
  // Without perf events, the recorder is not notified when the program loads libraries, so it
  // checks at intervals.
  of.read_code_after =
      std::clamp<clock::duration>(now - begun_, milliseconds(20), milliseconds(2000));
  image& known = images_[of.image];
  const bool same_program =
      known.code.empty() || std::any_of(code.begin(), code.end(), [&](const mapped_code& part) {
        return part.begin == known.code.front().begin && part.path == known.code.front().path;
      });
  if (!same_program || of.program.empty() || known.code.empty()) of.program = of.watched->program();
  if (!same_program) {
    of.image = images_.size();
    images_.push_back({of.watched->pid(), std::move(code)});
    return;
  }
  // Keep code that was unmapped, because the addresses of earlier samples may be in it.
  for (mapped_code& old : known.code) {
    const bool overlaps = std::any_of(code.begin(), code.end(), [&](const mapped_code& part) {
      return part.begin < old.end && old.begin < part.end;
    });
    if (!overlaps) code.push_back(std::move(old));
  }
  std::sort(code.begin(), code.end(),
            [](const mapped_code& a, const mapped_code& b) { return a.begin < b.begin; });
  known.code = std::move(code);
}

void thread_recorder::drain() {
  const cpu_sampler::listener listener{
      [this](std::uint32_t pid, std::uint32_t tid) {
        next_running_ = running_.next(random_);
        if (next_running_ == nullptr) return false;
        *next_running_ = {};
        next_running_->of.count = 1;
        next_running_->of.thread = static_cast<std::uint32_t>(thread_index(pid, tid));
        next_running_->image = find_process(pid).image;
        return true;
      },
      [this](stack_copy stack) { next_running_->stack = std::move(stack); },
      [this](std::uint32_t pid, std::uint32_t parent) { find_process(pid, parent); },
      [this](std::uint32_t pid) { find_process(pid).mapped = true; }};
  cpu_.drain(listener);
}

void thread_recorder::find_children() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const auto& [pid, of] : processes_) {
    if (!of.watched) continue;
    for (const std::uint32_t child : of.watched->children()) found.emplace_back(child, pid);
  }
  for (const auto& [child, pid] : found) find_process(child, pid);
}

void thread_recorder::read_times(process& of, thread& to, std::uint32_t tid) {
  const scheduled_time now = of.watched->times(tid);
  if (now.cpu_ns == 0) return;
  if (!to.first) to.first = now;
  to.of.span_ns =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(now.at - to.first->at).count());
  to.of.cpu_ns = now.cpu_ns - to.first->cpu_ns;
  to.of.queue_ns = now.queue_ns - to.first->queue_ns;
}

void thread_recorder::sample_wait(std::uint32_t pid, std::uint32_t tid) {
  process& of = find_process(pid);
  if (!of.watched) return;
  const std::size_t index = thread_index(pid, tid);
  {
    thread& t = threads_[index];
    if (t.own) return;
    const bool is_power_of_two = (t.of.wait_samples & (t.of.wait_samples + 1)) == 0;
    if (is_power_of_two) {
      std::string name = of.watched->name(tid);
      if (!name.empty()) t.of.name = std::move(name);
      t.own = is_name_of_library_thread(t.of.name);
      if (t.own) return;
    }
    if (is_power_of_two || t.of.wait_samples % 4 == 0) read_times(of, t, tid);
  }
  if (of.forbidden) return;
  seen_wait wait;
  const seen_state state = of.watched->sample_wait(tid, wait);
  thread& t = threads_[index];
  if (state == seen_state::gone) return;
  if (state == seen_state::forbidden) {
    of.forbidden = true;
    if (not_permitted_.empty()) not_permitted_ = threads_[index].of.name;
    return;
  }
  ++wait_samples_;
  ++t.of.wait_samples;
  if (state != seen_state::waits) return;
  ++t.of.waits;
  constexpr std::size_t max_kinds_of_waits = 65'536;
  const wait_key key{index, wait.reason, wait.address, wait.stack.pc, wait.stack.sp};
  if (counted_waits_.size() < max_kinds_of_waits || counted_waits_.count(key) != 0) {
    ++counted_waits_[key];
  }
  raw_sample* const to = waiting_.next(random_);
  if (to == nullptr) return;
  thread_sample sample;
  sample.count = 1;
  sample.thread = static_cast<std::uint32_t>(index);
  sample.waits = true;
  sample.reason = wait.reason;
  sample.address = wait.address;
  sample.holder = wait.holder;
  sample.what = std::move(wait.what);
  *to = {std::move(sample), of.image, std::move(wait.stack)};
}

thread_recorder::wait_key thread_recorder::key_of(const raw_sample& wait) noexcept {
  return {wait.of.thread, wait.of.reason, wait.of.address, wait.stack.pc, wait.stack.sp};
}

/// Sets the counts of the selected waits so that each also represents equal waits that were counted
/// but not selected.
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
    wait.of.count = counted->second * (before + 1) / all - counted->second * before / all;
  }
}

void thread_recorder::list_threads() {
  alive_.clear();
  for (auto& [pid, of] : processes_) {
    if (!of.watched) continue;
    const std::vector<std::uint32_t> threads = of.watched->threads();
    if (threads.empty()) {
      of.watched.reset();
      continue;
    }
    refresh_code(of);
    for (const std::uint32_t tid : threads) {
      const auto known = index_of_.find({pid, tid});
      if (known == index_of_.end() || !threads_[known->second].own) alive_.emplace_back(pid, tid);
    }
  }
}

/// Takes wait samples of a few randomly chosen threads.
void thread_recorder::round() {
  const clock::time_point now = clock::now();
  if (now >= next_list_) {
    list_threads();
    next_list_ = now + milliseconds(alive_.size() < 50 ? 30 : 100);
  }
  const std::size_t count = std::min(alive_.size(), samples_per_round);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t chosen =
        std::uniform_int_distribution<std::size_t>(i, alive_.size() - 1)(random_);
    std::swap(alive_[i], alive_[chosen]);
    sample_wait(alive_[i].first, alive_[i].second);
  }
}

int thread_recorder::work() {
  if (cpu_.works()) drain();
  const clock::time_point now = clock::now();
  if (now >= next_interval_) {
    cpu_.change_interval(std::uniform_int_distribution<std::uint64_t>(
        cpu_interval_ns / 2, cpu_interval_ns + cpu_interval_ns / 2)(random_));
    next_interval_ = now + milliseconds(100);
  }
  if (now >= next_round_) {
    const std::uint64_t before_ns = own_cpu_ns();
    late_s_ += seconds(now - next_round_);
    ++rounds_;
    if (now >= next_children_) {
      find_children();
      next_children_ = now + (cpu_.works() ? milliseconds(2000) : milliseconds(200));
    }
    round();
    const double cost_s = static_cast<double>(own_cpu_ns() - before_ns) * 1e-9;
    // Limit the influence of a single slow round, such as the first one, so that it does not make
    // all later rounds rare.
    cost_per_round_s_ = cost_per_round_s_ * 0.9 + std::min(cost_s, 4 * cost_per_round_s_) * 0.1;
    // The first rounds are more frequent, so that short programs are sampled too.
    const double budget = seconds(now - begun_) < 1 ? 2 * budget_of_waits : budget_of_waits;
    mean_pause_s_ = std::max(min_pause_s, cost_per_round_s_ / budget);
    // With exponentially distributed pauses, samples are representative even if threads work
    // periodically (Wolff, Poisson arrivals see time averages, 1982).
    const double pause_s = std::exponential_distribution<double>(1 / mean_pause_s_)(random_);
    next_round_ = now + of_seconds(std::min(pause_s, 10 * mean_pause_s_));
  }
  constexpr std::int64_t max_ms = 50;
  const auto left = std::chrono::duration_cast<milliseconds>(next_round_ - clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, max_ms));
}

thread_samples thread_recorder::result() {
  if (cpu_.works()) drain();
  thread_samples to;
  const double time_s = std::max(1e-9, seconds(clock::now() - begun_));
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
  count_unselected_waits();
  for (reservoir* const from : {&running_, &waiting_}) {
    for (raw_sample& raw : from->all()) {
      if (threads_[raw.of.thread].own) continue;
      stack_unwinder& unwinder = *unwinders[raw.image];
      sampled_stack stack;
      for (const std::uint64_t address : unwinder.unwind(raw.stack)) {
        const mapped_code* const code = unwinder.find(address);
        if (code == nullptr) continue;
        const std::uint32_t module = modules.number(code->path, code->path);
        const std::uint64_t offset = address - code->begin + code->file_offset;
        stack.push_back(places.number(std::pair(module, offset), code_offset{module, offset}));
      }
      raw.of.stack = stacks.number(stack, stack);
      const auto [at, is_new] =
          known.try_emplace({raw.of.thread, raw.of.waits, static_cast<int>(raw.of.reason),
                             raw.of.address, raw.of.holder, raw.of.what, raw.of.stack},
                            to.samples.size());
      if (is_new) {
        to.samples.push_back(raw.of);
      } else {
        to.samples[at->second].count += raw.of.count;
      }
      raw.stack = {};
    }
  }
  for (const auto& [pid, of] : processes_) to.processes.push_back({pid, of.program});
  for (thread& t : threads_) {
    // A thread of the Lotus library is recognized by its name, so it may have been sampled before
    // it had this name. Discard the counts of these samples.
    if (t.own) t.of.wait_samples = t.of.waits = t.of.span_ns = 0;
    to.threads.push_back(std::move(t.of));
  }
  return to;
}

}  // namespace lotus::tool
