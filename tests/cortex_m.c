/* Startup code for a program on an emulated Cortex-M board: vectors, the FPU if there is one, and newlib's own startup.
 * It counts instructions for qemu with -icount shift=0: one virtual nanosecond each, SysTick at 25 MHz. */
#include <stdint.h>

extern uint32_t end_of_stack[];
extern void _start(void);
uint32_t instructions_since_last_call(void);

#define REGISTER(address) (*(volatile uint32_t *)(address))

static void reset(void) {
#if defined(__ARM_FP)
    REGISTER(0xE000ED88) |= 0xFu << 20; /* CPACR: coprocessors 10 and 11 */
    __asm volatile("dsb\n isb");
#endif
    REGISTER(0xE000E014) = 0xFFFFFF; /* SysTick: reload, current, control: processor clock */
    REGISTER(0xE000E018) = 0;
    REGISTER(0xE000E010) = 5;
    _start();
}
static void hang(void) {
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))end_of_stack, reset, hang, hang, hang, hang, hang, 0, 0, 0, 0, hang, hang, 0, hang, hang,
};

uint32_t instructions_since_last_call(void) {
    static uint32_t last;
    const uint32_t now = REGISTER(0xE000E018), passed = (last - now) & 0xFFFFFF;
    last = now;
    return passed * 40;
}
