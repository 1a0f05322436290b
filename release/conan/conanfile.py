"""Conan 2 recipe for the C++ headers: `conan create release/conan` puts them into the local cache."""

import os
import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy

SOURCES = Path(__file__).parent.parent.parent


class Approxsvm(ConanFile):
    name = "approxsvm"
    license = "BSD-3-Clause"
    description = "Compiles trained SVMs into predictors with equal labels, hundreds of times faster than scikit-learn"
    package_type = "header-library"
    settings = "compiler"
    no_copy_source = True

    def set_version(self):
        found = re.search(r"project\(approxsvm VERSION ([\d.]+)", (SOURCES / "CMakeLists.txt").read_text())
        self.version = found[1]

    def export_sources(self):
        copy(self, "LICENSE", SOURCES, self.export_sources_folder)
        copy(self, "*", SOURCES / "cpp" / "include", os.path.join(self.export_sources_folder, "include"))

    def validate(self):
        check_min_cppstd(self, 17)

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        if self.settings.compiler != "msvc":
            self.cpp_info.cxxflags = ["-ffp-contract=off"]
