#include "mapping/mapping.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/errors.hpp"
#include "base/formats/json_reader.hpp"
#include "base/formats/json_writer.hpp"
#include "describe/description.hpp"
#include "mapping/read/table_text.hpp"

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

namespace {

using nlohmann::json;

const json& object_member(const json& object, const char* key, const std::string& path) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_object()) {
    throw input_error(path + ": not a mapping, it has no object '" + key + "'");
  }
  return *at;
}

std::string text_of(const json& value, const std::string& path) {
  if (!value.is_string()) throw input_error(path + ": a function's name is not a text");
  return value.get<std::string>();
}

/// Returns a number that is at least 0 (and never -0), because nothing in a mapping is negative.
double amount_member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? std::max(0.0, at->get<double>()) : 0;
}

std::uint64_t count_member(const json& object, const char* key) {
  constexpr double most = 1e18;  // a larger number cannot be a count
  return static_cast<std::uint64_t>(std::min(amount_member(object, key), most));
}

void read_uses(const json& functions, operation_use& op) {
  for (const auto& [name, f] : functions.items()) {
    const auto known = op.functions.find(name);
    if (known == op.functions.end() || !f.is_object()) continue;
    op.runs = std::max(op.runs, count_member(f, "runs"));
    known->second.hits = count_member(f, "hits");
    known->second.samples = amount_member(f, "samples");
    known->second.share = amount_member(f, "share");
  }
}

}  // namespace

struct shown_use {
  const operation_use* op = nullptr;
  const function_use* function = nullptr;
};

const description<shown_use>& description_of(const shown_use*) {
  using u = const shown_use&;
  static const description<shown_use> all(
      "function", "how often a function was seen in an operation",
      {
          {"hits", [](u of) { return of.function->hits; }, "runs in which it was seen"},
          {"runs", [](u of) { return of.op->runs; }, "runs in all"},
          {"samples", [](u of) { return of.function->samples; }, "time or samples, in unit"},
          {"share", [](u of) { return of.function->share; }, "share of the operation, 0 to 1"},
          {"inlined", [](u of) { return of.function->inlined; },
           "by function inlined in it: samples; only if the program has debug information", if_any},
      });
  return all;
}

const description<mapping>& description_of(const mapping*) {
  using m = const mapping&;
  using names = std::vector<std::string>;
  using uses = std::vector<std::pair<std::string, shown_use>>;
  static const description<mapping> all(
      "mapping", "the functions behind operations",
      {
          {"op_to_func",
           [](m of) {
             std::map<std::string, names> functions;
             for (const auto& [name, op] : of.ops) functions[name] = by_share(op);
             return functions;
           },
           "by operation: its functions, FUNCTION|MODULE, most frequent first"},
          {"common_funcs_to_op",
           [](m of) {
             std::map<std::string, names> common;
             for (const auto& [name, ops] : of.common()) common[name] = {ops.begin(), ops.end()};
             return common;
           },
           "functions that several operations have, and which"},
          {"unit", &mapping::unit, "unit of samples, such as ms; may be empty"},
          {"functions",
           [](m of) {
             std::vector<std::pair<std::string, uses>> functions;
             for (const auto& [name, op] : of.ops) {
               uses& of_op = functions.emplace_back(name, uses()).second;
               for (const std::string& function : by_share(op)) {
                 of_op.emplace_back(function, shown_use{&op, &op.functions.at(function)});
               }
             }
             return functions;
           },
           "by operation and function"},
      });
  return all;
}

void write_mapping(const mapping& m, output_file& out) {
  std::string text;
  json_writer to(text, json_style::spaced);
  write_value(to, m);
  out.write(text);
  out.write("\n");
}

mapping read_mapping(const std::string& path) {
  const json document = parse_json(path, read_text(path));
  if (!document.is_object()) throw input_error(path + ": not a mapping, expected an object");
  mapping result;
  for (const auto& [name, functions] : object_member(document, "op_to_func", path).items()) {
    operation_use& use = result.ops[name];
    if (!functions.is_array())
      throw input_error(path + ": an operation's functions are not a list");
    for (const json& function : functions) use.functions[text_of(function, path)] = {};
  }
  if (document.contains("functions")) {
    for (const auto& [name, functions] : object_member(document, "functions", path).items()) {
      const auto known = result.ops.find(name);
      if (known != result.ops.end() && functions.is_object()) read_uses(functions, known->second);
    }
  }
  const auto unit = document.find("unit");
  if (unit != document.end() && unit->is_string()) result.unit = unit->get<std::string>();
  return result;
}

}  // namespace lotus::tool
