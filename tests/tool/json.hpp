// JSON as the tests read it: strictly, so that a member of another type or none fails the test.
#ifndef LOTUS_TESTS_TOOL_JSON_HPP
#define LOTUS_TESTS_TOOL_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool_test {

/// A value of a parsed text, which it keeps alive. Whatever it is not throws.
class json {
 public:
  /// Fails the test when `text` is not valid JSON, in UTF-8.
  static json parse(const std::string& text);

  json operator[](const std::string& key) const;
  json operator[](std::size_t index) const;
  bool has(const std::string& key) const;

  /// Of an array or an object.
  std::size_t size() const;
  std::vector<json> array() const;
  struct member;
  /// In their order.
  std::vector<member> members() const;

  std::string text() const;
  std::int64_t integer() const;  ///< 1.0 is none
  double number() const;
  bool boolean() const;
  bool is_null() const;
  bool is_number() const;
  bool is_text() const;
  bool is_array() const;
  bool is_object() const;

  /// With sorted keys, bare, so that equal values give equal texts; without one member of the top.
  std::string canonical(const std::string& left_out = "") const;

 private:
  explicit json(std::shared_ptr<const nlohmann::ordered_json> value) : value_(std::move(value)) {}
  json part(const nlohmann::ordered_json& value) const;

  std::shared_ptr<const nlohmann::ordered_json> value_;
};

struct json::member {
  std::string name;
  json value;
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_TOOL_JSON_HPP
