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

void mapping_builder::add(const std::string& op, const function_report& run) {
  if (std::exchange(first_, false)) all_.unit = run.unit;
  if (all_.unit != run.unit) all_.unit.clear();
  operation_use& use = all_.ops[op];
  ++use.runs;
  for (const auto& [function, value] : run.functions) {
    function_use& f = use.functions[function];
    ++f.hits;
    f.samples += value;
  }
  for (const auto& [function, inlined] : run.inlined) {
    const auto known = use.functions.find(function);
    if (known == use.functions.end()) continue;
    for (const auto& [inner, value] : inlined) known->second.inlined[inner] += value;
  }
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
