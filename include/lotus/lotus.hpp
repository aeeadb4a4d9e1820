// Lotus: tells a C++ data-preprocessing pipeline where its time goes.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

#include "lotus/async_scope.hpp"
#include "lotus/batch.hpp"
#include "lotus/compose.hpp"
#include "lotus/config.hpp"
#include "lotus/counter.hpp"
#include "lotus/loader.hpp"
#include "lotus/macros.hpp"
#include "lotus/options.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/scope_arguments.hpp"
#include "lotus/stage.hpp"
#include "lotus/version.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/collector.hpp"
  #include "lotus/map.hpp"
  #include "lotus/session.hpp"
#endif

#endif  // LOTUS_LOTUS_HPP
