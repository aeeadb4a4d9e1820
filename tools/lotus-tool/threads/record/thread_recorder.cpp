#include "threads/record/thread_recorder.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <lotus/base/cpu_limits.hpp>
#include <utility>

#include "threads/record/recorder_clocks.hpp"
#include "threads/record/socket_peer.hpp"

namespace lotus::tool {
namespace {

using std::chrono::milliseconds;

/// Maximum CPU time per second, in seconds, for taking wait samples.
constexpr double budget_of_waits = 0.004;
/// So many that a round usually shows the states of all threads.
constexpr std::size_t samples_per_round = 16;
constexpr double min_pause_s = 0.004;

/// Returns how many CPUs a process may use.
unsigned cpus_of(pid_t pid) noexcept {
  const int allowed = lotus::detail::allowed_cpus_of(pid).count;
  const double limit = lotus::detail::cpus_of_cgroups();
  const double cpus = limit > 0 ? std::min<double>(allowed, std::ceil(limit)) : allowed;
  return static_cast<unsigned>(std::max(0.0, cpus));
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
      cpu_at_begin_ns_(own_cpu_ns()),
      start_(start),
      children_at_begin_ns_(children_cpu_ns()),
      cpus_(cpus_of(pid)) {
  const auto number = static_cast<std::uint32_t>(pid);
  find_process(number);
  threads_[thread_index(number, number)].of.started_ns = 0;
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
    threads_.back().is_new = start_ == sampling_start::at_exec;
    threads_.back().seen = clock::now();
    threads_.back().of.started_ns = since_begin(threads_.back().seen);
  }
  return at->second;
}

std::uint64_t thread_recorder::since_begin(clock::time_point at) const noexcept {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(at - begun_).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns));
}

/// Notes that a thread started or ended. The start of a thread may arrive after its end, because
/// the kernel stores records of each processor separately.
void thread_recorder::take_thread(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent,
                                  std::uint64_t at_ns, bool ends) {
  constexpr std::size_t max_threads = 65'536;
  const auto known = index_of_.find({pid, tid});
  const auto at = since_begin(clock::time_point(std::chrono::nanoseconds(at_ns)));
  if (known == index_of_.end() && threads_.size() >= max_threads) {
    if (!ends) ++more_threads_;
    return;
  }
  if (known != index_of_.end() && !ends) {
    // The kernel gives the ids of ended threads to new threads.
    const sampled_thread& before = threads_[known->second].of;
    if (before.ended_ns != 0 && at > before.ended_ns) index_of_.erase(known);
  }
  thread& of = threads_[thread_index(pid, tid)];
  (ends ? of.of.ended_ns : of.of.started_ns) = at;
  if (ends) return;
  of.of.parent = parent;
  of.is_new = true;
}

/// Returns which processes have opened a pipe, or the other end of a socket; nullopt if that is
/// unknown.
/// @param pid  a process that has opened the pipe or socket.
std::optional<thread_recorder::open_ends> thread_recorder::ends_of(std::uint32_t pid,
                                                                   const std::string& what) {
  const bool is_socket = what.rfind("socket:", 0) == 0;
  const auto peer = is_socket ? peer_of_socket(pid, what) : std::nullopt;
  if (is_socket && !peer) return std::nullopt;
  if (peer && !peer->name.empty()) names_of_peers_[what] = peer->name;
  open_ends found;
  for (const auto& [other, of] : processes_) {
    if (!of.watched) continue;
    const open_end end = of.watched->end_of(peer ? peer->what : what);
    if (end.reads || end.writes) found[other] = end;
  }
  return found;
}

/// Returns which other processes can end a wait for one of several pipes and sockets. Returns
/// nullopt if that is unknown: if some can be written by recorded processes and others from
/// outside, or also by the waiting process itself, which often wakes itself through a pipe or an
/// event descriptor.
std::optional<thread_recorder::open_ends> thread_recorder::ends_of_any(
    std::uint32_t pid, const std::vector<std::string>& polled) {
  constexpr std::size_t max_polled = 32;  // looking for more takes too long
  if (polled.size() > max_polled) return std::nullopt;
  open_ends found;
  bool is_known = false;
  bool is_outside = false;
  for (const std::string& one : polled) {
    const bool is_pipe = one.rfind("pipe:", 0) == 0;
    if (!is_pipe && one.rfind("socket:", 0) != 0) return std::nullopt;
    const auto ends = ends_of(pid, one);
    if (!ends) continue;  // such as a socket that waits for connections
    bool has_other = false;
    for (const auto& [other, end] : *ends) {
      if (is_pipe && !end.writes) continue;
      if (other == pid) return std::nullopt;
      found[other] = {one, other, true, true};
      has_other = true;
    }
    is_known = true;
    is_outside = is_outside || !has_other;
  }
  const bool is_mixed = is_outside && !found.empty();
  return is_known && !is_mixed ? std::optional(std::move(found)) : std::nullopt;
}

/// Finds out which processes have the other end of what a thread waits for, if this was not done
/// recently. Looks again, because a process that starts others closes the ends of their pipes a
/// little later.
/// @param pid  the process of the waiting thread.
void thread_recorder::find_ends(std::uint32_t pid, const seen_wait& wait) {
  constexpr std::size_t max_objects = 64;
  const std::string& channel = wait.several.empty() ? wait.what : wait.several;
  const clock::time_point now = clock::now();
  if (next_ends_.size() >= max_objects && next_ends_.count(channel) == 0) return;
  next_look& next = next_ends_[channel];
  if (now < next.at) return;
  next.at = now + next.pause * static_cast<int>(std::max<std::size_t>(1, wait.polled.size()));
  next.pause = std::min<clock::duration>(2 * next.pause, milliseconds(1000));
  const bool is_pipe = wait.reason == lotus::detail::wait_reason::pipe;
  const bool is_poll = !wait.polled.empty();
  auto found = is_poll ? ends_of_any(pid, wait.polled) : ends_of(pid, wait.what);
  if (!found && !is_poll) return;
  // The process at the other end of a socket may have closed it or ended since the last look.
  if (found && found->empty() && !is_pipe && ends_.count({channel, pid}) != 0) return;
  for (const auto& seen : processes_) ends_.erase({channel, seen.first});
  if (!found) return;
  if (!is_pipe) (*found)[pid];  // an entry for its own process: this end was looked up
  for (auto& [other, end] : *found) {
    end.what = channel;
    end.pid = other;
    ends_[{channel, other}] = end;
  }
}

/// Keeps a round, or not, so that a random selection of all rounds is kept.
void thread_recorder::keep(sampled_round round) {
  constexpr std::size_t max_rounds = 4096;
  if (kept_rounds_.size() < max_rounds) {
    kept_rounds_.push_back(std::move(round));
    return;
  }
  const std::uint64_t place = std::uniform_int_distribution<std::uint64_t>(0, rounds_)(random_);
  if (place < max_rounds) kept_rounds_[static_cast<std::size_t>(place)] = std::move(round);
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
  for (mapped_code& part : code) {
    const auto old =
        std::find_if(known.code.begin(), known.code.end(), [&part](const mapped_code& one) {
          return one.begin == part.begin && one.path == part.path;
        });
    part.build = old != known.code.end() ? old->build : of.watched->build_of(part);
  }
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
      [this](std::uint32_t pid, std::uint32_t tid, std::uint64_t at_ns) {
        next_running_ = running_.next(random_);
        if (next_running_ == nullptr) return false;
        *next_running_ = {};
        next_running_->of.count = 1;
        next_running_->of.thread = static_cast<std::uint32_t>(thread_index(pid, tid));
        const clock::time_point at{std::chrono::nanoseconds(at_ns)};
        next_running_->of.at_ms.push_back(static_cast<std::uint32_t>(since_begin(at) / 1'000'000));
        next_running_->image = find_process(pid).image;
        return true;
      },
      [this](stack_copy stack) { next_running_->stack = std::move(stack); },
      [this](std::uint32_t pid, std::uint32_t parent) { find_process(pid, parent); },
      [this](std::uint32_t pid, std::uint32_t tid, std::uint32_t parent, std::uint64_t at_ns,
             bool ends) { take_thread(pid, tid, parent, at_ns, ends); },
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

void thread_recorder::read_times(const process& of, thread& to, std::uint32_t tid) const {
  const scheduled_time now = of.watched->times(tid);
  if (now.cpu_ns == 0) return;
  if (!to.first) {
    to.first = now;
    if (to.is_new) to.first = {begun_ + std::chrono::nanoseconds(to.of.started_ns), 0, 0, 0};
  }
  if (to.runs_before == 0) to.runs_before = now.runs;
  // A thread that starts and then waits is switched a few times.
  constexpr std::uint64_t few = 2;
  to.of.woke = now.runs > to.runs_before + few;
  to.of.span_ns = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::nanoseconds(now.at - to.first->at).count()));
  to.of.cpu_ns = now.cpu_ns - to.first->cpu_ns;
  to.of.queue_ns = now.queue_ns - to.first->queue_ns;
}

void thread_recorder::sample_wait(std::uint32_t pid, std::uint32_t tid, sampled_round& round) {
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
  round.states.push_back({static_cast<std::uint32_t>(index), sampled_round::runs});
  if (state != seen_state::waits) return;
  ++t.of.waits;
  const bool is_channel = wait.reason == lotus::detail::wait_reason::socket ||
                          wait.reason == lotus::detail::wait_reason::pipe;
  if (is_channel || !wait.polled.empty()) find_ends(pid, wait);
  constexpr std::size_t max_kinds_of_waits = 65'536;
  const wait_key key{index, wait.reason, wait.address, wait.stack.pc, wait.stack.sp};
  round.states.back().sample = sampled_round::waits_unknown;
  if (counted_waits_.size() < max_kinds_of_waits || counted_waits_.count(key) != 0) {
    const auto next = static_cast<std::int32_t>(counted_waits_.size());
    counted_wait& counted = counted_waits_.try_emplace(key, counted_wait{0, next}).first->second;
    ++counted.count;
    round.states.back().sample = counted.index;
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
  sample.polled = std::move(wait.several);
  *to = {std::move(sample), of.image, std::move(wait.stack)};
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
      if (known != index_of_.end()) threads_[known->second].seen = clock::now();
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
  sampled_round states;
  states.at_ms = static_cast<std::uint32_t>(since_begin(now) / 1'000'000);
  states.alive = static_cast<std::uint32_t>(alive_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t chosen =
        std::uniform_int_distribution<std::size_t>(i, alive_.size() - 1)(random_);
    std::swap(alive_[i], alive_[chosen]);
    sample_wait(alive_[i].first, alive_[i].second, states);
  }
  keep(std::move(states));
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

}  // namespace lotus::tool
