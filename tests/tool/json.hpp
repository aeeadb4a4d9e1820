// Reads JSON strictly: a missing member or a member of another type makes the test fail.
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

/// A value of a parsed text. The object keeps the text alive. Functions throw if the value has
/// another type.
class json {
 public:
  /// Parses `text`. Fails the test if `text` is not valid JSON in UTF-8.
  static json parse(const std::string& text);

  json operator[](const std::string& key) const;
  json operator[](std::size_t index) const;
  bool has(const std::string& key) const;

  /// Returns the number of elements of an array or of members of an object.
  std::size_t size() const;
  std::vector<json> array() const;
  struct member;
  /// Returns the members of an object in the order in which they are in the text.
  std::vector<member> members() const;

  std::string text() const;
  std::int64_t integer() const;  ///< throws if the number is written as 1.0
  double number() const;
  bool boolean() const;
  bool is_null() const;
  bool is_number() const;
  bool is_text() const;
  bool is_array() const;
  bool is_object() const;

  /// Returns a text without blanks and with sorted keys, so that equal values have equal texts.
  /// @param left_out  name of a top-level member to leave out.
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
