// The kinds of values that a result can have, and their types in JSON.
#ifndef LOTUS_TOOL_DESCRIBE_VALUES_HPP
#define LOTUS_TOOL_DESCRIBE_VALUES_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace lotus::tool {

class object_description;

/// The type of a value in JSON.
struct value_type {
  enum class kind : std::uint8_t {
    text,
    flag,
    integer,
    natural,
    number,
    list,
    by_name,
    object,
    one_of  ///< a value of one of several types
  };
  kind is = kind::text;
  bool or_null = false;
  /// For a list or a by_name object: the type of its values. For a value of several possible types:
  /// these types.
  std::vector<value_type> of = {};
  /// Returns the description of an object. A function, so that descriptions are made when needed.
  const object_description& (*object)() = nullptr;
  std::vector<std::string_view> words = {};  ///< if not empty, a text is one of these
};

/// The value of a cell: a whole number, another number, or a text; monostate if it is missing.
using datum = std::variant<std::monostate, std::int64_t, double, std::string>;

/// How people read a number.
enum class unit : std::uint8_t {
  plain,
  time_ns,
  share,
  bytes,
  three_digits,
  batches_per_s,
  whole_share  ///< in whole percent; a share below 1 is not rounded up to it
};

/// How tables show a value.
struct column {
  std::string_view title;
  unit in = unit::plain;
  /// If lines are too wide, columns with a number are left out, the lowest first.
  unsigned dropped = 0;
  std::string_view missing = "-";  ///< what a cell contains if the value is missing
};

/// Option of a field: the key is left out if the value is missing, empty, 0 or false.
struct if_any_option {};
inline constexpr if_any_option if_any{};
/// Option of a field: the outputs that contain it, as bits; without this option, all do.
struct in {
  unsigned bits;
};
/// Option of a field: the only texts that its value can be.
struct words {
  std::vector<std::string_view> all;
};

template <std::size_t N>
words words_of(const char* const (&list)[N]) {
  return {{list, list + N}};
}

/// Values by name that are made one after the other, because there may be a million.
template <class V>
struct named_values {
  std::function<void(const std::function<void(std::string_view name, const V&)>&)> for_each;
  bool any = true;
};
/// The same without names.
template <class V>
struct value_list {
  std::function<void(const std::function<void(const V&)>&)> for_each;
  bool any = true;
};

/// What is known of a field without its value.
struct field_facts {
  std::string_view key;  ///< key in JSON; "": only tables contain it
  std::string meaning;
  value_type type = {};
  bool always = true;  ///< whether objects always have this key
  unsigned outputs = ~0U;
  column shown = {};
};

/// Returns the exact text of a value, as in CSV; "" if it is missing.
std::string exact_text(const datum& value);
/// Returns a value for people to read, such as "1.2 ms" or "34 %".
std::string human_text(const column& of, const datum& value);

namespace describing {

template <class V, class = void>
struct has_description : std::false_type {};
template <class V>
struct has_description<V, std::void_t<decltype(description_of(static_cast<const V*>(nullptr)))>>
    : std::true_type {};

/// Whether a value is words, which text_of() makes a text.
template <class V, class = void>
struct has_text : std::false_type {};
template <class V>
struct has_text<V, std::void_t<decltype(text_of(std::declval<const V&>()))>> : std::true_type {};

/// The kinds of values that a field can have, with the type of what is inside.
enum class shape : std::uint8_t {
  scalar,
  optional,
  pointer,
  object,
  list,
  lazy_list,
  map,
  lazy_map,
  variant
};
template <class V>
struct shape_of {
  static constexpr shape is = has_description<V>::value ? shape::object : shape::scalar;
};
template <shape Is, class Inner>
struct shape_with {
  static constexpr shape is = Is;
  using inner = Inner;
};
template <class V>
struct shape_of<std::optional<V>> : shape_with<shape::optional, V> {};
template <class V>
struct shape_of<const V*> : shape_with<shape::pointer, V> {};
template <>
struct shape_of<const char*> : shape_with<shape::scalar, char> {};
template <class V>
struct shape_of<std::vector<V>> : shape_with<shape::list, V> {};
template <class V>
struct shape_of<value_list<V>> : shape_with<shape::lazy_list, V> {};
template <class Name, class V, class Less>
struct shape_of<std::map<Name, V, Less>> : shape_with<shape::map, V> {};
template <class V>
struct shape_of<std::vector<std::pair<std::string, V>>> : shape_with<shape::map, V> {};
template <class V>
struct shape_of<named_values<V>> : shape_with<shape::lazy_map, V> {};

template <class... Values>
struct shape_of<std::variant<Values...>> {
  static constexpr shape is = shape::variant;
  template <class Type>
  static std::vector<value_type> types(const Type& type) {
    return {type(static_cast<const Values*>(nullptr))...};
  }
};

template <class V>
value_type type_of() {
  using kind = value_type::kind;
  constexpr shape is = shape_of<V>::is;
  if constexpr (is == shape::optional || is == shape::pointer) {
    value_type inner = type_of<typename shape_of<V>::inner>();
    inner.or_null = true;
    return inner;
  } else if constexpr (is == shape::object) {
    return {kind::object, false, {}, []() -> const object_description& {
              return description_of(static_cast<const V*>(nullptr));
            }};
  } else if constexpr (is == shape::list || is == shape::lazy_list) {
    return {kind::list, false, {type_of<typename shape_of<V>::inner>()}};
  } else if constexpr (is == shape::map || is == shape::lazy_map) {
    return {kind::by_name, false, {type_of<typename shape_of<V>::inner>()}};
  } else if constexpr (is == shape::variant) {
    return {kind::one_of, false, shape_of<V>::types([](const auto* of) {
              return type_of<std::decay_t<decltype(*of)>>();
            })};
  } else if constexpr (std::is_same_v<V, bool>) {
    return {kind::flag};
  } else if constexpr (std::is_integral_v<V>) {
    return {std::is_unsigned_v<V> ? kind::natural : kind::integer};
  } else if constexpr (std::is_same_v<V, double>) {
    return {kind::number};
  } else {
    static_assert(std::is_convertible_v<const V&, std::string_view> || has_text<V>::value,
                  "neither described nor a text");
    return {kind::text};
  }
}

template <class V>
bool is_empty(const V& value) {
  constexpr shape is = shape_of<V>::is;
  if constexpr (is == shape::optional || is == shape::pointer) {
    return !value;
  } else if constexpr (is == shape::lazy_list || is == shape::lazy_map) {
    return !value.any;
  } else if constexpr (is == shape::list || is == shape::map ||
                       (is == shape::scalar && has_text<V>::value)) {
    return value.empty();
  } else if constexpr (std::is_arithmetic_v<V>) {
    return value == V{};
  } else if constexpr (is == shape::scalar) {
    return std::string_view(value).empty();
  } else {
    return false;
  }
}

}  // namespace describing

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DESCRIBE_VALUES_HPP
