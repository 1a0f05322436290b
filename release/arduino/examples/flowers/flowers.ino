// Prints the kind of an iris flower for each line of four numbers, and whether it is proven.
#include <flowers.h>

void setup() { Serial.begin(115200); }

void loop() {
    float row[4];
    for (int j = 0; j < 4; ++j) {
        while (Serial.available() == 0) {
        }
        row[j] = Serial.parseFloat();
    }
    Serial.print(flowers_labels[flowers_predict(row)]);
    Serial.println(flowers_is_certain(row) ? "" : "?");
}
