// Provides call(), an equivalent of std::invoke that does not need <functional>.
#ifndef LOTUS_BASE_CALL_HPP
#define LOTUS_BASE_CALL_HPP

#include <type_traits>
#include <utility>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the object to which a pointer to member is applied. The argument is that object itself,
/// or a std::reference_wrapper or a pointer that refers to it.
template <class Class, class Object>
LOTUS_DETAIL_ALWAYS_INLINE constexpr decltype(auto) object_of_member(Object&& object) {
  if constexpr (std::is_base_of_v<Class, std::decay_t<Object>>) {
    return std::forward<Object>(object);
  } else if constexpr (std::is_convertible_v<Object, const Class&>) {
    return object.get();
  } else {
    return *std::forward<Object>(object);
  }
}

template <class Class, class Member, class Object, class... Arguments>
LOTUS_DETAIL_ALWAYS_INLINE constexpr decltype(auto) call_member(Member Class::*member,
                                                                Object&& object,
                                                                Arguments&&... arguments) {
  if constexpr (std::is_function_v<Member>) {
    return (object_of_member<Class>(std::forward<Object>(object)).*
            member)(std::forward<Arguments>(arguments)...);
  } else {
    return (object_of_member<Class>(std::forward<Object>(object)).*member);
  }
}

/// Calls a function, a function object or a pointer to member: anything for which
/// std::is_invocable_v is true.
template <class Function, class... Arguments>
LOTUS_DETAIL_ALWAYS_INLINE constexpr decltype(auto) call(Function&& function,
                                                         Arguments&&... arguments) {
  if constexpr (std::is_member_pointer_v<std::decay_t<Function>>) {
    return call_member(function, std::forward<Arguments>(arguments)...);
  } else {
    return std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_CALL_HPP
