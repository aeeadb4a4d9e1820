#include "mapping/mapping.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mapping/read/function_report.hpp"

namespace lotus::tool {

std::map<std::string, std::set<std::string>> mapping::common() const {
  std::map<std::string, std::set<std::string>> users;
  for (const auto& [name, op] : ops) {
    for (const auto& [function, use] : op.functions) users[function].insert(name);
  }
  for (auto at = users.begin(); at != users.end();) {
    at = at->second.size() < 2 ? users.erase(at) : std::next(at);
  }
  return users;
}

bool mapping::has_shares() const {
  return std::any_of(ops.begin(), ops.end(), [](const auto& op) {
    return std::any_of(op.second.functions.begin(), op.second.functions.end(),
                       [](const auto& function) { return function.second.share > 0; });
  });
}

namespace {

/// Returns by what to multiply a value to convert its unit; 0 if that is impossible.
double factor(const std::string& from, const std::string& to) {
  if (from == to) return 1;
  if (from == "s" && to == "ms") return 1000;
  return from == "ms" && to == "s" ? 0.001 : 0;
}

}  // namespace

bool mapping_builder::add(const std::string& op, const function_report& run) {
  if (std::exchange(first_, false)) all_.unit = run.unit;
  operation_use& use = all_.ops[op];
  if (++use.runs == 1) {
    use.unit = run.unit;
    if (factor(run.unit, all_.unit) != 0) use.unit = all_.unit;
  }
  if (all_.unit != use.unit) all_.unit.clear();
  all_.partial = all_.partial || run.partial;
  const double by = factor(run.unit, use.unit);
  for (const auto& [function, value] : run.functions) {
    function_use& f = use.functions[function];
    ++f.hits;
    f.samples += by * value;
  }
  for (const auto& [function, inlined] : run.inlined) {
    const auto known = use.functions.find(function);
    if (known == use.functions.end()) continue;
    for (const auto& [inner, value] : inlined) known->second.inlined[inner] += by * value;
  }
  return by != 0;
}

mapping mapping_builder::build() const {
  mapping result = all_;
  for (auto& [name, op] : result.ops) {
    double total = 0;
    for (const auto& [function, use] : op.functions) total += use.samples;
    for (auto& [function, use] : op.functions) use.share = total > 0 ? use.samples / total : 0;
  }
  return result;
}

std::vector<std::string> by_share(const operation_use& op) {
  std::vector<std::string> functions;
  functions.reserve(op.functions.size());
  for (const auto& [function, use] : op.functions) functions.push_back(function);
  std::stable_sort(functions.begin(), functions.end(),
                   [&op](const std::string& a, const std::string& b) {
                     return op.functions.at(a).share > op.functions.at(b).share;
                   });
  return functions;
}

}  // namespace lotus::tool
