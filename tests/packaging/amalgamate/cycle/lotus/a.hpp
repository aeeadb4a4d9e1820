#include "lotus/b.hpp"
