#include "waits/stacks/unwound_stacks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sampling/read/symbols.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/unwind/stack_copy.hpp"
#include "threads/unwind/stack_unwinder.hpp"
#include "waits/data/stack_files.hpp"

namespace lotus::tool {
namespace {

std::string call_name(const source_place& call) {
  const std::string owner = containing_function(call.function);
  const bool in_lambda = owner != call.function;
  return short_function(owner) + (in_lambda ? "::{lambda}" : "");
}

}  // namespace

unwound_stacks::process& unwound_stacks::find(const std::string& ending) {
  const auto [at, is_new] = processes_.try_emplace(ending);
  process& of = at->second;
  if (is_new) {
    of.stacks = read_stacks(run_, ending, diagnostics_);
    of.unwinders.resize(of.stacks.code.size());
    samples_.time_ns =
        samples_.time_ns == 0 ? of.stacks.last_ns : std::min(samples_.time_ns, of.stacks.last_ns);
  }
  return of;
}

void unwound_stacks::add(const std::string& ending, std::uint64_t number) {
  process& of = find(ending);
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
    const auto [module, module_is_new] =
        modules_.try_emplace(code->path, static_cast<std::uint32_t>(samples_.modules.size()));
    if (module_is_new) samples_.modules.push_back(code->path);
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
  for (const std::string& module : samples_.modules) {
    report_change(module, samples_.time_ns, diagnostics_);
  }
  named_.emplace(samples_);
}

const named_stack* unwound_stacks::stack_of(const std::string& ending, std::uint64_t number) const {
  const auto found = processes_.find(ending);
  if (found == processes_.end() || !named_) return nullptr;
  const auto unwound = found->second.unwound.find(number);
  return unwound == found->second.unwound.end() ? nullptr : &named_->of(unwound->second);
}

std::vector<std::string> unwound_stacks::of(const std::string& ending, std::uint64_t number) const {
  const named_stack* const found = stack_of(ending, number);
  if (found == nullptr) return {};
  const named_stack& stack = *found;
  constexpr std::size_t max_calls = 64;
  const std::size_t waits_in = waiting_call(stack);
  std::size_t end = stack.size();
  while (end > waits_in + 1 && is_of_runtime(stack[end - 1])) --end;
  std::vector<std::string> calls;
  for (std::size_t i = waits_in > 0 ? waits_in - 1 : 0; i < end && calls.size() < max_calls; ++i) {
    calls.push_back(call_name(stack[i]));
  }
  return calls;
}

std::string unwound_stacks::function_of(const std::string& ending, std::uint64_t number) const {
  const named_stack* const stack = stack_of(ending, number);
  if (stack == nullptr) return {};
  const std::size_t waits_in = waiting_call(*stack);
  return waits_in < stack->size() ? call_name((*stack)[waits_in]) : std::string();
}

}  // namespace lotus::tool
