#include "waits/stacks/unwound_stacks.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <tuple>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "sampling/read/variable_names.hpp"
#include "threads/unwind/stack_copy.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {
namespace {

std::string call_name(const source_place& call) {
  const std::string owner = containing_function(call.function);
  const bool in_lambda = owner != call.function;
  return short_function(owner) + (in_lambda ? "::{lambda}" : "");
}

/// Removes what glibc puts before its own names of functions, as in __libc_malloc.
std::string without_libc(const std::string& function) {
  constexpr std::string_view internal = "__libc_";
  const bool is_internal = function.compare(0, internal.size(), internal) == 0;
  return function.substr(is_internal ? internal.size() : 0);
}

}  // namespace

unwound_stacks::process& unwound_stacks::find(const std::string& ending) {
  const auto [at, is_new] = processes_.try_emplace(ending);
  process& of = at->second;
  if (is_new) {
    of.stacks = read_stacks(run_, ending, diagnostics_);
    of.unwinders.resize(of.stacks.code.size());
  }
  return of;
}

void unwound_stacks::add(const std::string& ending, std::uint64_t number) {
  process& of = find(ending);
  if (of.stacks.named.count(number) != 0) return;
  const auto found = of.stacks.by_number.find(number);
  if (found == of.stacks.by_number.end() || of.unwound.count(number) != 0) return;
  std::unique_ptr<stack_unwinder>& unwinder = of.unwinders[found->second.code];
  if (unwinder == nullptr) {
    unwinder = std::make_unique<stack_unwinder>(of.stacks.code[found->second.code]);
  }
  sampled_stack stack;
  for (const std::uint64_t address : unwinder->unwind(found->second.copy)) {
    const mapped_code* const code = unwinder->find(address);
    if (code == nullptr) continue;
    const auto [module, module_is_new] = modules_.try_emplace(
        {code->path, code->build}, static_cast<std::uint32_t>(samples_.modules.size()));
    if (module_is_new) {
      samples_.modules.push_back(code->path);
      samples_.builds.push_back(code->build);
    }
    const std::uint64_t offset = address - code->begin + code->file_offset;
    const auto [place, place_is_new] = places_.try_emplace(
        {module->second, offset}, static_cast<std::uint32_t>(samples_.places.size()));
    if (place_is_new) samples_.places.push_back({module->second, offset});
    stack.push_back(place->second);
  }
  of.unwound[number] = static_cast<std::uint32_t>(samples_.stacks.size());
  samples_.stacks.push_back(std::move(stack));
}

void unwound_stacks::name_all() {
  name_places(samples_, diagnostics_);
  named_.emplace(samples_);
}

const named_stack* unwound_stacks::stack_of(const std::string& ending, std::uint64_t number) const {
  const auto found = processes_.find(ending);
  if (found == processes_.end() || !named_) return nullptr;
  const auto stored = found->second.stacks.named.find(number);
  if (stored != found->second.stacks.named.end()) return &stored->second;
  const auto unwound = found->second.unwound.find(number);
  return unwound == found->second.unwound.end() ? nullptr : &named_->of(unwound->second);
}

std::string unwound_stacks::names_text(const std::string& ending) {
  const process& of = find(ending);
  if (of.unwound.empty()) return {};
  std::string text = "names,\n" + code_text(samples_);
  for (const auto& [number, stack] : of.unwound) {
    std::ostringstream line;
    line << "calls," << std::hex << number << ',' << std::dec;
    const char* separator = "";
    for (const std::uint32_t place : samples_.stacks[stack]) {
      line << separator << place;
      separator = ";";
    }
    text += line.str() + '\n';
  }
  return text;
}

std::vector<std::string> unwound_stacks::of(const std::string& ending, std::uint64_t number) const {
  const named_stack* const found = stack_of(ending, number);
  if (found == nullptr) return {};
  const named_stack& stack = *found;
  constexpr std::size_t max_calls = 64;
  std::size_t waits_in = waiting_call(stack);
  if (waits_in < stack.size() && is_of_runtime(stack[waits_in])) {
    // Without debug information, the program's functions that are inlined into functions of the C++
    // library have no names. What the program called is still known.
    while (waits_in + 1 < stack.size() && is_in_runtime_module(stack[waits_in])) ++waits_in;
  }
  std::size_t end = stack.size();
  while (end > waits_in + 1 && is_of_runtime(stack[end - 1])) --end;
  std::vector<std::string> calls;
  for (std::size_t i = waits_in > 0 ? waits_in - 1 : 0; i < end && calls.size() < max_calls; ++i) {
    calls.push_back(call_name(stack[i]));
  }
  return calls;
}

std::string unwound_stacks::library_call(const std::string& ending, std::uint64_t number) const {
  const named_stack* const stack = stack_of(ending, number);
  if (stack == nullptr) return {};
  std::size_t end = 0;
  while (end < stack->size() && is_in_runtime_module((*stack)[end])) ++end;
  const bool is_known = end > 0 && end < stack->size() && (*stack)[end - 1].has_name;
  return is_known ? call_name((*stack)[end - 1]) : std::string();
}

std::string unwound_stacks::allocation(const std::string& ending, std::uint64_t number) const {
  const named_stack* const stack = stack_of(ending, number);
  if (stack == nullptr) return {};
  for (const source_place& call : *stack) {
    if (!is_in_runtime_module(call)) break;
    std::string name = without_libc(call.function);
    if (call.has_name && is_allocation(name)) return name;
  }
  return {};
}

std::string unwound_stacks::function_of(const std::string& ending, std::uint64_t number) const {
  const named_stack* const stack = stack_of(ending, number);
  if (stack == nullptr) return {};
  const std::size_t waits_in = waiting_call(*stack);
  return waits_in < stack->size() ? call_name((*stack)[waits_in]) : std::string();
}

namespace {

template <class Each>
void for_each_entry(run_blocked_on& joined, const Each& each) {
  for (auto& [name, list] : joined.ops) {
    for (blocked_on& one : list.by) each(one);
  }
  for (auto& [stage, list] : joined.between_batches) {
    for (blocked_on& one : list.by) each(one);
  }
  for (blocked_on& one : joined.waits.by) each(one);
  for (blocked_on& one : joined.preprocessing.by) each(one);
  for (blocked_on& one : joined.steps.by) each(one);
  for (blocked_on& one : joined.between_epochs.by) each(one);
}

/// Whether most samples of a wait are in functions of a readers-writer lock. The kernel does not
/// tell these from condition variables, and nothing tells who holds it for reading.
bool waits_for_readers_writer_lock(const run_blocked_on& joined, const blocked_on& one,
                                   const unwound_stacks& stacks) {
  if (one.reason != wait_reason::condition) return false;
  std::uint64_t in_lock = 0;
  std::uint64_t all = 0;
  for (const seen_stack& seen : one.stacks) {
    const std::string call = stacks.library_call(joined.processes[seen.process], seen.number);
    if (call.find("rwlock_") != std::string::npos) in_lock += seen.samples;
    all += seen.samples;
  }
  return in_lock > 0 && 2 * in_lock >= all;
}

bool needs_place(const blocked_on& one) {
  // A lock of a library is held for so short that few samples show it.
  const std::uint64_t min_samples = variable_names::is_place_in_library(one.what.name) ? 2 : 3;
  return one.reason == wait_reason::lock && one.samples >= min_samples && !one.stacks.empty() &&
         !has_name(one);
}

/// Returns the function that takes a lock: that of the C library if the lock is its own, as in
/// malloc, and otherwise the program's. "" if it is unknown.
std::string taker_in(const unwound_stacks& stacks, const std::string& ending,
                     std::uint64_t number) {
  // A function of the C++ library, such as that of a string, may allocate for the program.
  std::string allocation = stacks.allocation(ending, number);
  if (!allocation.empty()) return allocation;
  const std::string call = stacks.library_call(ending, number);
  const auto has = [&call](const char* text) { return call.find(text) != std::string::npos; };
  if (!call.empty() && !has("lock") && !has("mutex")) return without_libc(call);
  const std::vector<std::string> calls = stacks.of(ending, number);
  return calls.size() > 1 ? calls[1] : std::string();
}

/// Returns the function in which the lock's holder waited in at least 5 samples, and in at least
/// half of the samples of the holder; "" if there is none.
std::string held_in(const run_blocked_on& joined, const blocked_on& lock,
                    const unwound_stacks& stacks) {
  constexpr std::uint64_t min_samples = 5;
  std::map<std::string, std::uint64_t> samples;
  std::uint64_t all = 0;
  for (const seen_stack& seen : lock.holder_stacks) {
    all += seen.samples;
    if (seen.number == 0) continue;
    samples[stacks.function_of(joined.processes[seen.process], seen.number)] += seen.samples;
  }
  for (const auto& [function, count] : samples) {
    if (!function.empty() && count >= min_samples && 2 * count >= all) return function;
  }
  return {};
}

}  // namespace

void name_stacks(const run_files& run, run_blocked_on& joined, diagnostic_log& diagnostics) {
  unwound_stacks stacks(run, diagnostics);
  for_each_entry(joined, [&](const blocked_on& one) {
    for (const auto* const seen : {&one.stacks, &one.holder_stacks}) {
      for (const seen_stack& of : *seen) stacks.add(joined.processes[of.process], of.number);
    }
  });
  stacks.name_all();
  for_each_entry(joined, [&](blocked_on& one) {
    // Add up the samples of stacks that contain the same calls.
    std::map<std::vector<std::string>, std::uint64_t> samples;
    for (const seen_stack& seen : one.stacks) {
      samples[stacks.of(joined.processes[seen.process], seen.number)] += seen.samples;
    }
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    for (const auto& [calls, count] : samples) {
      all += count;
      if (calls.empty() || count <= most) continue;
      most = count;
      one.calls = calls;
    }
    if (all > 0) one.calls_share = static_cast<double>(most) / static_cast<double>(all);
    one.held_in = held_in(joined, one, stacks);
    if (waits_for_readers_writer_lock(joined, one, stacks)) {
      one.reason = wait_reason::lock;
      joined.locks[one.what];
    }
  });
}

void name_locks(const run_files& run, run_blocked_on& joined, diagnostic_log& diagnostics) {
  constexpr std::size_t most_stacks = 8;
  unwound_stacks stacks(run, diagnostics);
  const auto for_each_stack = [&](const blocked_on& one, const auto& each) {
    for (std::size_t i = 0; i < std::min(most_stacks, one.stacks.size()); ++i) each(one.stacks[i]);
  };
  bool any = false;
  for_each_entry(joined, [&](const blocked_on& one) {
    if (!needs_place(one)) return;
    any = true;
    for_each_stack(one, [&](const seen_stack& seen) {
      stacks.add(joined.processes[seen.process], seen.number);
    });
  });
  if (!any) return;
  stacks.name_all();
  for_each_entry(joined, [&](blocked_on& one) {
    if (!needs_place(one)) return;
    std::map<std::string, std::uint64_t> samples;
    for_each_stack(one, [&](const seen_stack& seen) {
      samples[taker_in(stacks, joined.processes[seen.process], seen.number)] += seen.samples;
    });
    std::uint64_t most = 0;
    for (const auto& [function, count] : samples) {
      if (!function.empty() && count > most)
        std::tie(most, one.taken_in) = std::tie(count, function);
    }
  });
}

std::string calls_text(const std::vector<std::string>& calls) {
  return joined(calls, ", called by ", printable_line);
}

std::string calls_of_wait(const run_blocked_on& joined, const std::string& name,
                          const blocked_on* of) {
  const blocked_list* const list = joined.of('S' + name);
  if (list == nullptr) return {};
  for (const blocked_on& one : list->by) {
    if (of != nullptr && (one.reason != of->reason || !(one.what == of->what))) continue;
    if (one.calls.empty()) return {};
    return printable_line(name) + ' ' + wait_phrase(one, name) + " in " + calls_text(one.calls);
  }
  return {};
}

}  // namespace lotus::tool
