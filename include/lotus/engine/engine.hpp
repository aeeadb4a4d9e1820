// Includes the implementation of the API. A header-only program compiles the implementation in each
// file; a program with LOTUS_COMPILED compiles it only in the file that defines
// LOTUS_IMPLEMENTATION.
#ifndef LOTUS_ENGINE_ENGINE_HPP
#define LOTUS_ENGINE_ENGINE_HPP

#include "lotus/config.hpp"
#include "lotus/engine/api_calls.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/collectors/collector_state.hpp"
  #include "lotus/engine/map_passes.hpp"
  #include "lotus/record/join.hpp"
  #include "lotus/record/message.hpp"
  #include "lotus/record/rare_calls.hpp"
  #include "lotus/session/session_services.hpp"
#endif
#if defined(LOTUS_IMPLEMENTATION)
  #include "lotus/engine/c_calls.hpp"
#endif

#endif  // LOTUS_ENGINE_ENGINE_HPP
