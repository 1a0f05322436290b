// Answers rows with an exported header m.h. The whole program writes the label, values, bounds and instructions for
// every row; with DECIDE, it contains only the function called for a label.
// If rows are codes, the macro CODES is their type; without it, rows are float.
#include "m.h"
#if defined(CODES)
#define QUANTIZE(numbers, row) m_quantize(numbers, row)
#else
#define CODES float
#define QUANTIZE(numbers, row) memcpy(row, numbers, sizeof(numbers))
#endif
#if defined(DECIDE)
int decide(const CODES row[]);
int decide(const CODES row[]) {
    return m_predict_if_certain(row);
}
#else
#include <stdio.h>
#include <string.h>
#if defined(__arm__)
uint32_t instructions_since_last_call(void);
#elif defined(__riscv)
static uint32_t instructions_since_last_call(void) {
    static uint32_t last;
    uint32_t now, passed;
    __asm volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop" : "=r"(now));
    passed = now - last;
    last = now;
    return passed;
}
#else
static uint32_t instructions_since_last_call(void) {
    return 0;
}
#endif
int main(void) {
    FILE *const rows = fopen("rows.bin", "rb"), *const answers = fopen("answers.bin", "wb");
    static float numbers[m_n_features], values[m_n_values], bounds[m_n_values];
    static CODES row[m_n_features];
    while (fread(numbers, sizeof numbers, 1, rows) == 1) {
        int label;
        uint32_t spent;
        QUANTIZE(numbers, row);
        instructions_since_last_call();
        label = m_predict_if_certain(row);
        spent = instructions_since_last_call();
        m_decision_values(row, values);
        m_error_bounds(row, bounds);
        fwrite(&label, sizeof label, 1, answers);
        fwrite(values, sizeof values, 1, answers);
        fwrite(bounds, sizeof bounds, 1, answers);
        fwrite(&spent, sizeof spent, 1, answers);
    }
    return fclose(answers);
}
#endif
