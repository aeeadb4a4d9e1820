#include "threads/analysis/suggested_markers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace lotus::tool {
namespace {

constexpr std::uint64_t enough_samples = 10;

/// Counts the samples at each source line, and finds the most frequent line.
class place_votes {
 public:
  void add(const source_place& place, std::uint64_t count) {
    votes_[place] += count;
    all_ += count;
  }
  void add_without_place(std::uint64_t count) { all_ += count; }
  bool is_enough() const { return all_ >= enough_samples; }

  /// Returns the line that at least `share` of the samples have; nullopt if there is none, or if it
  /// is not in a source file of the user.
  std::optional<source_place> winner(double share) const {
    const auto most =
        std::max_element(votes_.begin(), votes_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (all_ < enough_samples || most == votes_.end()) return std::nullopt;
    if (static_cast<double>(most->second) < share * static_cast<double>(all_)) return std::nullopt;
    const source_place& place = most->first;
    const bool is_of_system = place.file.rfind("/usr/", 0) == 0;
    if (place.file.empty() || place.line <= 0 || is_of_system) return std::nullopt;
    return place;
  }

 private:
  std::map<source_place, std::uint64_t> votes_;
  std::uint64_t all_ = 0;
};

/// The functions of the program that were active in samples of the consumer while it used the CPU.
class consumer_work {
 public:
  void add(const named_stack& stack, std::uint64_t count) {
    // Pairs of a function in the stack and the function of the program that it calls.
    std::set<std::pair<std::string, std::string>> calls;
    std::string callee;
    for (const source_place& call : stack) {
      if (is_of_runtime(call)) continue;
      if (!callee.empty()) calling_.insert(call.function);
      calls.emplace(call.function, std::exchange(callee, call.function));
    }
    for (const auto& call : calls) calls_[call] += count;
  }

  /// Returns whether a function calls other functions of the program that use the CPU.
  bool calls_others(const std::string& function) const { return calling_.count(function) != 0; }

  /// Returns the share of the consumer's CPU time that it spends in `function` and in the functions
  /// that `function` calls, except `callee`. The share is relative to the time in `root`, the
  /// outermost function in the stack of the wait, because the rest of the time is spent at the
  /// start and the end of the program. Returns 0 if there are few samples.
  double share_of(const std::string& function, const std::string& callee,
                  const std::string& root) const {
    std::uint64_t all = 0;
    std::uint64_t sum = 0;
    for (const auto& [call, count] : calls_) {
      if (call.first == root) all += count;
      if (call.first == function && call.second != callee) sum += count;
    }
    constexpr std::uint64_t min_samples = 5;
    return all < min_samples ? 0 : static_cast<double>(sum) / static_cast<double>(all);
  }

 private:
  std::set<std::string> calling_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> calls_;
};

/// Returns the index of the call by which the program enters the class whose function waits: the
/// innermost call outside this class. If the waiting function belongs to no class, returns the
/// index of its caller. Exception: a waiting function of no class that also calls functions that do
/// work contains the loop over batches itself, so the result is the index of the waiting function.
/// @param stack  not empty.
std::optional<std::size_t> waiting_api_call(const named_stack& stack, const consumer_work& work) {
  const std::size_t waits_in = waiting_call(stack);
  if (is_of_runtime(stack[waits_in])) return std::nullopt;
  const source_place& waiting = stack[waits_in];
  const std::string scope = class_of(waiting.function);
  if (scope.empty() && work.calls_others(waiting.function)) return waits_in;
  for (std::size_t i = waits_in; i < stack.size(); ++i) {
    if (is_of_runtime(stack[i])) continue;
    const bool is_same = scope.empty() ? stack[i].function == waiting.function
                                       : class_of(stack[i].function) == scope;
    if (!is_same) return i;
  }
  return scope.empty() ? std::optional(waits_in) : std::nullopt;
}

/// Returns the call in the consumer's loop that waits for a batch. A loader may consist of several
/// classes that call each other, so this is the call in the function that does most of the
/// consumer's work. If that is unclear, it is the call that waiting_api_call() finds.
std::optional<source_place> consumer_call(const named_stack& stack, const consumer_work& work) {
  std::optional<std::size_t> best = waiting_api_call(stack, work);
  if (!best) return std::nullopt;
  std::string root;
  for (const source_place& call : stack) {
    if (!is_of_runtime(call)) root = call.function;
  }
  constexpr double min_share = 0.2;
  double best_share = min_share;
  std::string callee;
  for (std::size_t i = 0, begin = *best; i < stack.size(); ++i) {
    if (is_of_runtime(stack[i])) continue;
    const double share = i < begin ? 0 : work.share_of(stack[i].function, callee, root);
    if (share > best_share) {
      best = i;
      best_share = share;
    }
    callee = stack[i].function;
  }
  return stack[*best];
}

/// Finds a task in the stack of a worker. A task is a lambda that was written in a function of the
/// class `scope` but is called by other code, for example by a pool of threads. Returns the line in
/// the lambda that calls a function of the program; nullopt if the stack contains no task.
std::optional<source_place> task_call(const named_stack& stack, const std::string& scope) {
  for (std::size_t i = stack.size(); !scope.empty() && i-- > 1;) {
    const std::string containing = containing_function(stack[i].function);
    if (is_of_runtime(stack[i]) || containing == stack[i].function) continue;
    if (class_of(containing) != scope || is_of_runtime(stack[i - 1])) continue;
    const bool is_called_by_it =
        std::any_of(stack.begin() + static_cast<std::ptrdiff_t>(i), stack.end(),
                    [&](const source_place& call) { return call.function == containing; });
    if (!is_called_by_it) return stack[i];
  }
  return std::nullopt;
}

/// Returns the call in a worker's loop that builds a batch: the outermost call by which one
/// function of the program calls another directly. The loop of a thread pool calls its tasks
/// through the C++ library, such as std::function; then the result is the outermost such call in
/// the task. Returns nullopt if there is no call.
/// @param entry  the function by which the group is named; its callers are wrappers.
std::optional<source_place> loop_call(const named_stack& stack, const std::string& entry) {
  std::optional<std::size_t> first;
  std::optional<std::size_t> caller;
  std::size_t begin = stack.size();
  for (std::size_t i = stack.size(); i-- > 0 && begin == stack.size();) {
    if (stack[i].function == entry) begin = i + 1;
  }
  for (std::size_t i = begin; i-- > 0;) {
    if (is_of_runtime(stack[i])) continue;
    if (caller && *caller == i + 1) return stack[*caller];
    if (caller && !first) first = caller;
    caller = i;
  }
  if (!first) return std::nullopt;
  return stack[*first];
}

/// Returns whether a name says that a function passes something on or waits for room, so that a
/// thread that waits in it makes what others receive.
bool gives_away(const std::string& function) {
  static constexpr std::array<const char*, 17> words{
      "push", "put",  "enqueue", "send", "submit", "produc",  "write", "insert",  "append",
      "full", "room", "space",   "free", "offer",  "emplace", "give",  "schedule"};
  std::string name = function;
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::any_of(words.begin(), words.end(),
                     [&](const char* one) { return name.find(one) != std::string::npos; });
}

/// What a thread did at one time.
struct observation {
  std::uint32_t at_ms = 0;
  std::uint32_t thread = 0;
  std::size_t sample = 0;
};

/// Returns when the threads of a group were seen with their stacks, by time.
std::vector<observation> observations_of(const thread_samples& samples,
                                         const thread_activity& group) {
  std::vector<observation> all;
  for (std::size_t i = 0; i < samples.samples.size(); ++i) {
    const thread_sample& s = samples.samples[i];
    if (group.members.count(s.thread) == 0) continue;
    for (const std::uint32_t at_ms : s.at_ms) all.push_back({at_ms, s.thread, i});
  }
  for (const sampled_round& round : samples.rounds) {
    for (const sampled_round::state& one : round.states) {
      if (one.sample < 0 || group.members.count(one.thread) == 0) continue;
      all.push_back({round.at_ms, one.thread, static_cast<std::size_t>(one.sample)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const observation& a, const observation& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.at_ms < b.at_ms;
  });
  return all;
}

/// Returns the index of the call at this line; the stack's size if there is none.
std::size_t index_of(const named_stack& stack, const source_place& place) {
  return static_cast<std::size_t>(std::find(stack.begin(), stack.end(), place) - stack.begin());
}

/// Returns the function that the call with this index calls; "" if there is none.
std::string called_by(const named_stack& stack, std::size_t call) {
  for (std::size_t i = call; i-- > 0;) {
    if (!is_of_runtime(stack[i])) return stack[i].function;
  }
  return {};
}

/// Returns whether a waiting call was seen to be made several times: whether the function that
/// contains it did other things in between, while it stayed active itself. Once is enough if the
/// call does little but wait. Otherwise it may run only once in the program, and contain the loop.
/// @param waits  whether a sample is one of the waits in this call.
template <class Waits>
bool is_repeated(const thread_samples& samples, const named_stacks& stacks,
                 const thread_activity& group, const source_place& call, const Waits& waits) {
  constexpr std::size_t enough = 3;
  std::size_t changes = 0;
  std::size_t within = 0;   // number of CPU samples in the call
  std::size_t outside = 0;  // number of CPU samples in other parts of the function
  bool waited = false;
  std::string callee;
  for (const observation& one : observations_of(samples, group)) {
    const thread_sample& s = samples.samples[one.sample];
    const named_stack& stack = stacks.of(s.stack);
    if (waits(s)) {
      waited = true;
      callee = called_by(stack, index_of(stack, call));
      continue;
    }
    const auto same = std::find_if(stack.begin(), stack.end(), [&](const source_place& place) {
      return place.function == call.function && place.module == call.module;
    });
    if (same == stack.end()) {
      waited = false;  // the function returned
      continue;
    }
    const auto index = static_cast<std::size_t>(same - stack.begin());
    const bool elsewhere = same->line != call.line || called_by(stack, index) != callee;
    if (waited && elsewhere) ++changes;
    if (elsewhere) waited = false;
    if (!s.waits) ++(elsewhere ? outside : within);
  }
  return changes >= (2 * within > outside ? enough : 1);
}

/// Whether these are lines of a C program, in which C++ does not compile.
bool is_c_file(const std::string& file) {
  return file.size() > 2 && file.compare(file.size() - 2, 2, ".c") == 0;
}

}  // namespace

const char* suggested_marker::text() const noexcept {
  static constexpr const char* in_c[] = {
      "lotus_span wait = lotus_begin_wait();", "lotus_span batch = lotus_begin_batch();",
      "lotus_end_wait(&wait, i); lotus_consumed(i);", "lotus_end_batch(&batch, i);"};
  // The batch ends with the scope.
  static constexpr const char* in_cpp[] = {"lotus::batch_wait wait;",
                                           "LOTUS_BATCH_PREPROCESSED(i);", "wait.consumed(i);", ""};
  return (is_c ? in_c : in_cpp)[static_cast<std::size_t>(is)];
}

std::vector<suggested_marker> suggested_markers(const thread_samples& samples,
                                                const named_stacks& stacks,
                                                const std::vector<thread_activity>& groups) {
  constexpr double most = 0.8;
  constexpr double min_wait = 0.1;
  using lotus::detail::wait_reason;
  if (groups.empty()) return {};
  const std::size_t subject = subject_of(groups);
  if (groups[subject].blocked.empty()) return {};
  const blocked_part& wait = groups[subject].blocked.front();
  const bool is_queue = wait.reason == wait_reason::condition && wait.what.empty();
  if (!is_queue || !wait.of || *wait.of == subject || wait.share < min_wait) return {};
  const thread_activity& workers = groups[*wait.of];
  consumer_work work;
  for (const thread_sample& s : samples.samples) {
    const bool is_consumer = groups[subject].members.count(s.thread) != 0;
    if (!s.waits && is_consumer) work.add(stacks.of(s.stack), s.count);
  }
  place_votes consumer;
  place_votes worker;
  place_votes blocked_worker;
  std::set<std::uint64_t> addresses;
  bool waits_at_future = false;
  const std::string scope = class_of(wait.function.function);
  for (const thread_sample& s : samples.samples) {
    const named_stack& stack = stacks.of(s.stack);
    if (s.waits && groups[subject].members.count(s.thread) != 0) {
      if (s.reason != wait.reason || stack.empty()) continue;
      if (wait.samples.count(static_cast<std::size_t>(&s - samples.samples.data())) == 0) continue;
      addresses.insert(s.address);
      waits_at_future = waits_at_future || waits_for_future(stack);
      const auto call = consumer_call(stack, work);
      if (call) consumer.add(*call, s.count);
      if (!call) consumer.add_without_place(s.count);
    } else if (workers.members.count(s.thread) != 0) {
      // Ignore incomplete stacks, because functions of the program may be missing in them.
      if (start_of_thread(stack).symbol.empty()) continue;
      const auto task = task_call(stack, scope);
      const auto call = task ? task : loop_call(stack, workers.function);
      if (!s.waits && call) worker.add(*call, s.count);
      if (!s.waits && !call) worker.add_without_place(s.count);
      // While a worker waits for the consumer or for work, it does not preprocess a batch.
      const bool is_idle =
          s.waits && (stack.empty() || !call || *call == stack[waiting_call(stack)] ||
                      (!scope.empty() && class_of(stack[waiting_call(stack)].function) == scope));
      if (call && !is_idle) blocked_worker.add(*call, s.count);
    }
  }
  // If the consumer waits for only one std::future, it does not wait for batches in a loop, but for
  // the end of all work.
  if (waits_at_future && addresses.size() <= 1) return {};
  const auto consumed = consumer.winner(most);
  // If the workers use the CPU so little that there are not enough CPU samples, use samples of
  // their waits, such as for files or for threads of their own.
  const auto preprocessed = (worker.is_enough() ? worker : blocked_worker).winner(most);
  if (!consumed || !preprocessed) return {};
  // Suggest nothing if other threads run this line too, such as code of a template, because the
  // marker would also record their work.
  for (const thread_sample& s : samples.samples) {
    if (workers.members.count(s.thread) != 0) continue;
    for (const source_place& call : stacks.of(s.stack)) {
      if (call.file == preprocessed->file && call.line == preprocessed->line) return {};
    }
  }
  // The receiver is the thread that waits for what others produce. If the samples do not show who
  // that is, a suggestion could exchange the roles.
  const auto is_wait = [&](const thread_sample& s) {
    const auto index = static_cast<std::size_t>(&s - samples.samples.data());
    return wait.samples.count(index) != 0 &&
           index_of(stacks.of(s.stack), *consumed) < stacks.of(s.stack).size();
  };
  if (gives_away(consumed->function) || gives_away(wait.function.function)) return {};
  for (const std::size_t sample : wait.samples) {
    const named_stack& stack = stacks.of(samples.samples[sample].stack);
    const std::size_t call = index_of(stack, *consumed);
    for (std::size_t i = 0; call < stack.size() && i < call; ++i) {
      if (!is_of_runtime(stack[i]) && gives_away(containing_function(stack[i].function))) return {};
    }
  }
  if (!is_repeated(samples, stacks, groups[subject], *consumed, is_wait)) return {};
  if (is_c_file(consumed->file) != is_c_file(preprocessed->file)) return {};
  using kind = suggested_marker::kind;
  const bool is_c = is_c_file(consumed->file);
  std::vector<suggested_marker> markers{{*consumed, kind::begin_wait, wait.sure, is_c},
                                        {*consumed, kind::end_wait, wait.sure, is_c},
                                        {*preprocessed, kind::begin_batch, wait.sure, is_c}};
  if (is_c) markers.push_back({*preprocessed, kind::end_batch, wait.sure, is_c});
  return markers;
}

}  // namespace lotus::tool
