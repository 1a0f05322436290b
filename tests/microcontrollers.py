"""Emulated microcontrollers: building programs with gcc and running them in qemu.

With semihosting, programs access the files in the folder where qemu was started. No qemu board has both a Cortex-M0+
and enough memory for the rows, so code for the Cortex-M0+ runs on the Cortex-M3 of mps2-an385, which supports all of
its instructions. RISC-V, with or without an FPU, uses qemu's virt board; picolibc provides the startup code and the C
library.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
QUIET = ("-display", "none", "-monitor", "none", "-serial", "none")
RISC_V_MEMORY = ("flash=0x80000000", "flash_size=4M", "ram=0x80400000", "ram_size=4M")


@dataclass(frozen=True)
class Board:
    """A processor, and the emulated machine that runs its code."""

    name: str
    prefix: str  # of tool names
    flags: tuple[str, ...]  # for the processor
    hosted: tuple[str, ...]  # for linking with the C library
    emulator: tuple[str, ...]

    @property
    def tools(self) -> tuple[str, str]:
        """The names of the compiler and emulator."""
        return f"{self.prefix}-gcc", self.emulator[0]

    def compile(self, *arguments: str) -> list[str]:
        """Return a compiler command."""
        return [f"{self.prefix}-gcc", "-std=c99", "-ffp-contract=off", *self.flags, *arguments]

    def link(self, *arguments: str) -> list[str]:
        """Return a command that builds a program from sources."""
        return self.compile(*arguments, *self.hosted)

    def run(self, program: str) -> list[str]:
        """Return a command that runs a program, in which each instruction takes one virtual nanosecond."""
        return [*self.emulator, "-icount", "shift=0", *QUIET, "-kernel", program]


def cortex_m(name: str, machine: str, *flags: str) -> Board:
    """Return an Arm board."""
    hosted = (str(HERE / "cortex_m.c"), "--specs=rdimon.specs", "-T", str(HERE / "cortex_m.ld"))
    emulator = ("qemu-system-arm", "-M", machine, "-semihosting")
    return Board(name, "arm-none-eabi", ("-mthumb", *flags), hosted, emulator)


def risc_v(name: str, architecture: str, abi: str) -> Board:
    """Return a board with a 32-bit RISC-V processor."""
    memory = tuple(f"-Wl,--defsym=__{symbol}" for symbol in RISC_V_MEMORY)
    hosted = ("--oslib=semihost", "--crt0=hosted", *memory)
    machine = ("qemu-system-riscv32", "-M", "virt", "-bios", "none", "-semihosting-config", "enable=on,target=native")
    # Headers and startup files of picolibc, which is not linked to code that uses only the exported header.
    flags = (f"-march={architecture}", f"-mabi={abi}", "--specs=picolibc.specs")
    return Board(name, "riscv64-unknown-elf", flags, hosted, machine)


BOARDS = {
    board.name: board
    for board in (
        cortex_m("Cortex-M4F", "mps2-an386", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
        cortex_m("Cortex-M0+", "mps2-an385", "-mcpu=cortex-m0plus"),
        risc_v("RV32IMAFC", "rv32imafc", "ilp32f"),
        risc_v("RV32IMAC", "rv32imac", "ilp32"),
    )
}
