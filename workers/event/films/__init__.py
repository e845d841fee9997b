"""Films that are made automatically when Events change."""
