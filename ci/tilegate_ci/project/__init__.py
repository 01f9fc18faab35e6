"""Other people's benchmarks: reads Google Benchmark's and NVBench's JSON, builds and pairs."""
