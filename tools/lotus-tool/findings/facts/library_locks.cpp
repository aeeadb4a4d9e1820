#include "findings/facts/library_locks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "findings/facts/facts.hpp"

namespace lotus::tool {
namespace {

bool matters(const run_facts& f, std::string_view name, const blocked_on& one) {
  constexpr double worth_naming = 0.05;
  if (!is_of_library(one)) return false;
  if (is_allocation(one.taken_in)) {
    constexpr std::uint64_t fewest = 5;
    return one.samples >= fewest && share_of_path(f, name, one) >= worth_naming;
  }
  const bool is_long = static_cast<double>(one.ns) >= worth_naming * f.run_ns;
  return one.samples >= (is_long ? 2 : 3);
}

const blocked_on* first_that_matters(const run_facts& f, std::string_view name,
                                     const blocked_list& list) {
  const auto at = std::find_if(list.by.begin(), list.by.end(),
                               [&](const blocked_on& one) { return matters(f, name, one); });
  return at == list.by.end() ? nullptr : &*at;
}

}  // namespace

bool is_of_library(const blocked_on& one) {
  constexpr std::array<std::string_view, 7> functions{
      "rand", "random", "srand", "localtime", "localtime_r", "mktime", "strftime"};
  return one.reason == wait_reason::lock &&
         (is_allocation(one.taken_in) ||
          std::find(functions.begin(), functions.end(), one.taken_in) != functions.end());
}

const blocked_on* library_lock_of(const run_facts& f, std::string_view name) {
  const blocked_list* const list = f.d.blocked_on.of('S' + std::string(name));
  return list == nullptr ? nullptr : first_that_matters(f, name, *list);
}

const blocked_on* library_lock(const run_facts& f) {
  const blocked_on* most = nullptr;
  for (const auto& [name, list] : f.d.blocked_on.ops) {
    const blocked_on* const lock = first_that_matters(f, std::string_view(name).substr(1), list);
    if (lock != nullptr && (most == nullptr || lock->samples > most->samples)) most = lock;
  }
  return most;
}

double share_of_path(const run_facts& f, std::string_view name, const blocked_on& lock) {
  return lock.share * f.states_of(name).blocked;
}

}  // namespace lotus::tool
