// Provides owned_text, a string class for options, which does not need the header <string>.
#ifndef LOTUS_BASE_OWNED_TEXT_HPP
#define LOTUS_BASE_OWNED_TEXT_HPP

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Whether T has c_str(), as std::filesystem::path and string types of other libraries do.
template <class T, class = void>
inline constexpr bool is_c_text = false;
template <class T>
inline constexpr bool is_c_text<T, std::enable_if_t<std::is_convertible_v<
                                       decltype(std::declval<const T&>().c_str()), const char*>>> =
    true;

/// An owned string that converts from and to any string or path type. Shared objects may disagree
/// on std::string's ABI, but this class is the same in all of them, so it can be passed between
/// them. Errors: std::bad_alloc, like std::string. Thread safety: none.
class owned_text {
 public:
  owned_text() noexcept = default;
  owned_text(const char* text) : owned_text{std::string_view{text}, kept{}} {}
  /// @param text  a std::string_view, anything convertible to one (std::string), or anything with
  /// c_str() (std::filesystem::path).
  template <class Text,
            class = std::enable_if_t<!std::is_same_v<Text, owned_text> &&
                                     (std::is_convertible_v<const Text&, std::string_view> ||
                                      is_c_text<Text>)>>
  owned_text(const Text& text) : owned_text{view_of(text), kept{}} {}
  owned_text(const owned_text& other) : owned_text{other.view(), kept{}} {}
  owned_text(owned_text&& other) noexcept { swap(other); }
  owned_text& operator=(const owned_text& other) {
    owned_text copy{other};
    swap(copy);
    return *this;
  }
  /// Also assigns from anything that a constructor accepts.
  owned_text& operator=(owned_text&& other) noexcept {
    swap(other);
    return *this;
  }
  ~owned_text() { delete[] text_; }

  /// Returns the text, null-terminated.
  const char* c_str() const noexcept { return text_ == nullptr ? short_ : text_; }
  const char* data() const noexcept { return c_str(); }
  std::size_t size() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }

  operator std::string_view() const noexcept { return view(); }
  template <class String,
            class = std::enable_if_t<std::is_same_v<decltype(String{}.c_str()), const char*> &&
                                     std::is_constructible_v<String, const char*, std::size_t>>>
  operator String() const {
    return String(c_str(), bytes_);
  }

  friend bool operator==(const owned_text& a, std::string_view b) noexcept { return a.view() == b; }
  friend bool operator!=(const owned_text& a, std::string_view b) noexcept { return a.view() != b; }

 private:
  struct kept {};

  owned_text(std::string_view text, kept) {
    if (text.size() >= sizeof(short_)) text_ = new char[text.size() + 1];
    char* const to = text_ == nullptr ? short_ : text_;
    text.copy(to, text.size());
    to[text.size()] = '\0';
    bytes_ = text.size();
  }

  template <class Text>
  static std::string_view view_of(const Text& text) {
    if constexpr (std::is_convertible_v<const Text&, std::string_view>) {
      return text;
    } else {
      return text.c_str();
    }
  }
  std::string_view view() const noexcept { return {c_str(), bytes_}; }

  void swap(owned_text& other) noexcept {
    char* const text = text_;
    const std::size_t bytes = bytes_;
    text_ = other.text_;
    bytes_ = other.bytes_;
    other.text_ = text;
    other.bytes_ = bytes;
    char held[sizeof(short_)];
    __builtin_memcpy(held, short_, sizeof(short_));
    __builtin_memcpy(short_, other.short_, sizeof(short_));
    __builtin_memcpy(other.short_, held, sizeof(short_));
  }

  char* text_ = nullptr;  ///< the text on the heap; null if it is in short_
  std::size_t bytes_ = 0;
  /// Holds short texts, such as the default log_file, without allocating memory. The session is
  /// never destroyed, so leak checkers would report memory that its options have allocated.
  char short_[24] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_OWNED_TEXT_HPP
