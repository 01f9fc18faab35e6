"""--preload is an option, so that a mutant's library can take its place."""

import os


def pytest_addoption(parser):
    parser.addoption("--preload", required=True, help="libtilegate_cublas.so")


def pytest_configure(config):
    os.environ["TILEGATE_PRELOAD"] = config.getoption("preload")
