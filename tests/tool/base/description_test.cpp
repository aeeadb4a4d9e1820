// Tests that one description gives the JSON of a result, its schema and its table.
#include "describe/description.hpp"

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "describe/described_table.hpp"
#include "describe/schema.hpp"
#include "tool/json.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool {
namespace {

struct part {
  std::string name;
  std::optional<double> mean_ns;
};
struct whole {
  std::uint64_t count = 0;
  std::string loader;
  std::vector<part> parts;
  std::optional<part> best;
};

const description<part>& description_of(const part*) {
  static const description<part> all(
      "part", "a part",
      {
          {"name", &part::name, "its name", words{{"a", "b"}}},
          {"mean_ns", &part::mean_ns, "its mean", column{"mean", unit::time_ns}},
          {"", [](const part& of) { return of.name + of.name; }, "twice the name", column{"twice"}},
      });
  return all;
}

const description<whole>& description_of(const whole*) {
  static const description<whole> all(
      "whole", "all parts",
      {
          {"count", &whole::count, "how many"},
          {"loader", &whole::loader, "the loader", if_any},
          {"parts", &whole::parts, "the parts"},
          {"best", &whole::best, "the best one"},
          {"mean_of_best", [](const whole& of) { return of.best->mean_ns; }, "its mean",
           [](const whole& of) { return of.best.has_value(); }},
          {"", &whole::count, "how many, if there is a best one",
           [](const whole& of) { return of.best.has_value(); }, column{"with best"}},
      });
  return all;
}

std::string json_of(const whole& of) {
  std::ostringstream out;
  print_json(of, out);
  return out.str();
}

TEST_CASE("JSON has the described keys, without those that are empty or not there") {
  CHECK(json_of({}) == "{\"count\":0,\n\"parts\":[],\n\"best\":null}\n");
  const whole full{2, "val", {{"a", 1.5}, {"b", std::nullopt}}, part{"a", 1.5}};
  CHECK(json_of(full) ==
        "{\"count\":2,\"loader\":\"val\",\n\"parts\":[\n{\"name\":\"a\",\"mean_ns\":1.5},\n"
        "{\"name\":\"b\",\"mean_ns\":null}],\n\"best\":{\"name\":\"a\",\"mean_ns\":1.5},"
        "\"mean_of_best\":1.5}\n");
}

TEST_CASE("the schema says what is required, what may be null, and which words there are") {
  std::ostringstream out;
  print_schema("whole", type_of_output<whole>(), out);
  const auto schema = tool_test::parse_json(out.str());
  const auto& of_whole = schema["$defs"]["whole"];
  CHECK(of_whole["required"].size() == 3);
  CHECK(of_whole["properties"]["count"]["minimum"].number() == 0);
  CHECK(of_whole["properties"]["parts"]["items"]["$ref"].text() == "#/$defs/part");
  CHECK(of_whole["properties"]["best"]["anyOf"].size() == 2);
  CHECK(of_whole["properties"]["loader"]["description"].text() == "the loader");
  const auto& of_part = schema["$defs"]["part"]["properties"];
  CHECK(of_part.size() == 2);  // not what only tables contain
  CHECK(of_part["name"]["enum"].size() == 2);
  CHECK(of_part["mean_ns"]["type"][1].text() == "null");
}

TEST_CASE("a cell is missing if its object has no such key, and heads can be chosen") {
  const std::vector<whole> rows{{}, {2, "val", {}, part{"a", 1500}}};
  const auto& of = description_of(rows.data());
  const auto named = named_rows(rows, [](const whole& one) { return one.loader + '.'; });
  const auto head = [](const field& one) { return '<' + std::string(one.shown.title) + '>'; };
  std::ostringstream out;
  print_named_rows("loader", named, of, out, ~0U, head);
  CHECK(out.str() == "  loader  <with best>\n  .                 -\n  val.              2\n");
  CHECK(columns_in({named.front()}, of, ~0U).empty());
}

TEST_CASE("a table has the described columns with a title") {
  std::ostringstream out;
  print_rows(
      "part", std::vector<part>{{"a", 2e6}, {"b", std::nullopt}},
      description_of(static_cast<const part*>(nullptr)), [](const part& of) { return of.name; },
      out);
  CHECK(out.str() ==
        "  part      mean  twice\n"
        "  a     2.000 ms     aa\n"
        "  b            -     bb\n");
}

}  // namespace
}  // namespace lotus::tool
