// Everything behind the API: what the functions that it calls do. Compiled in every file of a
// header-only program; in one file, that which defines LOTUS_IMPLEMENTATION, of one with
// LOTUS_COMPILED.
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

#endif  // LOTUS_ENGINE_ENGINE_HPP
