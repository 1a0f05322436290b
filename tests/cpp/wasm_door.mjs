// Runs requests from test_wasm.py on approxsvm.wasm: each is a line of JSON, {"act": ..., ...}, as is the reply.
// Numeric arrays are sent as base64-encoded bytes.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [wasm, script] = process.argv.slice(2);
const { ApproxsvmError, loadRuntime } = await import(pathToFileURL(script));
const module = await WebAssembly.compile(readFileSync(wasm));
const runtime = await loadRuntime(module);
const KINDS = { f32: Float32Array, f64: Float64Array };

const bytesOf = (text) => new Uint8Array(Buffer.from(text, "base64"));
const numbersOf = ([kind, text]) => new KINDS[kind](bytesOf(text).buffer);
const encoded = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");
const named = (label) => (typeof label === "bigint" ? { integer: String(label) } : label);

function withModel(bytes, use, owner = runtime) {
  const model = owner.open(bytes);
  try {
    return use(model);
  } finally {
    model.close();
  }
}

// CRC-32, as defined by the format.
const TABLE = Uint32Array.from({ length: 256 }, (_, c) => {
  for (let bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});
function sealed(bytes) {
  const view = new DataView(bytes.buffer);
  view.setUint32(24, 0, true);
  let crc = ~0;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  view.setUint32(24, ~crc, true);
  return bytes;
}

// Every variant answers, or is refused with the library's message; anything else, such as a trap, raises an exception.
function attack(variants, nFeatures) {
  const outcomes = { refused: {}, answered: 0 };
  const rows = new Float32Array(3 * nFeatures).map((_, j) => ((j * 37) % 11) / 7 - 0.5);
  for (const bytes of variants) {
    try {
      withModel(bytes, (model) => {
        const given = model.nFeatures === nFeatures ? rows : new Float32Array(model.nFeatures);
        const wanted = { certified: true, labels: model.labels.length > 0, probabilities: model.nProbabilities > 0 };
        model.evaluate(given, { ...wanted, values: model.nDecisions > 0, bounds: model.nDecisions > 0 });
      });
      outcomes.answered += 1;
    } catch (error) {
      if (!(error instanceof ApproxsvmError)) throw error;
      outcomes.refused[error.message] = (outcomes.refused[error.message] ?? 0) + 1;
    }
  }
  return outcomes;
}

const ACTS = {
  describe: ({ artifact }) =>
    withModel(bytesOf(artifact), ({ labels, ...rest }) => ({ ...rest, labels: labels.map(named) })),
  evaluate: ({ artifact, rows, wanted }) =>
    withModel(bytesOf(artifact), (model) => {
      const answers = model.evaluate(Array.isArray(rows[0]) ? rows : numbersOf(rows), wanted);
      return Object.fromEntries(
        Object.entries(answers).map(([name, array]) => [name, name === "labels" ? array.map(named) : encoded(array)]),
      );
    }),
  record: ({ artifact, record }) =>
    withModel(bytesOf(artifact), (model) => {
      const row = model.rowOfRecord(record);
      return [...row.map((number) => (Number.isNaN(number) ? -9 : number)), ...model.predict(row).map(named)];
    }),
  // Returns the error for each given value, and for values that JSON cannot represent.
  openWrongly: ({ values }) =>
    [...values, undefined, 5n, Symbol("x"), () => 0].map((value) => {
      try {
        runtime.open(value);
      } catch (error) {
        return `${error.name}: ${error.message}`;
      }
      return "opened";
    }),
  predict: ({ artifact, rows }) => withModel(bytesOf(artifact), (model) => model.predict(rows).map(named)),
  truncate: ({ artifact, step, nFeatures }) => {
    const whole = bytesOf(artifact);
    const sizes = Array.from({ length: Math.ceil(whole.length / step) }, (_, k) => k * step);
    return attack(sizes.map((size) => whole.slice(0, size)), nFeatures);
  },
  corrupt: ({ artifact, step, flips, nFeatures }) => {
    const whole = bytesOf(artifact);
    function* variants() {
      for (let at = 0; at < whole.length; at += step) {
        for (const flip of flips) {
          const changed = whole.slice();
          changed[at] ^= flip;
          yield sealed(changed);
        }
      }
    }
    return attack(variants(), nFeatures);
  },
  // Opens hundreds of models one after another, and then many at once, so that memory must grow.
  async churn({ artifact, rows, again, together }) {
    const bytes = bytesOf(artifact), given = numbersOf(rows), own = await loadRuntime(module);
    const first = own.open(bytes);
    const expected = encoded(first.evaluate(given, { values: true }).values);
    for (let k = 0; k < again; ++k) own.open(bytes).close();
    const models = Array.from({ length: together }, () => own.open(bytes));
    const found = [first, ...models].map((model) => encoded(model.evaluate(given, { values: true }).values));
    models.forEach((model) => model.close());
    first.close();
    let closed = "";
    try {
      first.predict(given);
    } catch (error) {
      closed = error.message;
    }
    return { same: found.every((values) => values === expected), closed };
  },
  imports: () => ({ imports: WebAssembly.Module.imports(module).length, exports: WebAssembly.Module.exports(module) }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let reply;
  try {
    reply = { found: await ACTS[request.act](request) };
  } catch (error) {
    reply = { name: error.name, message: error.message, code: error.code, row: error.row };
  }
  console.log(JSON.stringify(reply));
}
