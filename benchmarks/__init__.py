"""Speed, compile time and memory beside other libraries, on the same work: `python -m benchmarks`."""
