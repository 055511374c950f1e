"""The reproduction book: chapters as one page, as Markdown for the docs, and as Parquet files."""
