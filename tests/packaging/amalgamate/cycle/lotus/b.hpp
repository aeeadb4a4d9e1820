#include "lotus/a.hpp"
