"""The built-in memory: SQLite rows, dense and lexical search, fusion. Knows no benchmark."""
