/**
 * approxsvm in JavaScript: a compiled kernel machine (.asvm) that predicts in browsers, workers and Node.js, without a
 * server. approxsvm.wasm is the C library declared in approxsvm.h; this file wraps its functions in classes.
 *
 *     import { loadRuntime } from "./approxsvm.mjs";
 *
 *     const runtime = await loadRuntime(new URL("approxsvm.wasm", import.meta.url));
 *     const model = runtime.open(await (await fetch("model.asvm")).arrayBuffer());
 *     model.predict([[5.1, 3.5, 1.4, 0.2]]);              // ["setosa"]
 *     const { labels, certified } = model.evaluate(rows, { labels: true, certified: true });
 *     model.close();
 *
 * Rows are in the source model's raw format, before any scaling: arrays of numbers, or a Float32Array or Float64Array
 * with the rows concatenated. Model.rowOfRecord() converts named fields, including strings, to a row. Errors from the
 * library are thrown as ApproxsvmError, with the library's message; a failed call changes nothing, and the model
 * remains usable.
 */

const TASKS = ["classification", "regression", "one-class"];
const MODES = ["approximate", "certified", "exact", "ensemble"];
const VALUES = { promised: 0, settled: 1, exact: 2 };

// Layout of the structs in approxsvm.h, with sizes and offsets in bytes; a pointer or size_t has four bytes.
const ERROR = { size: 272, status: 0, row: 8, message: 32 };
const LABEL = { size: 32, kind: 0, integer: 8, real: 16, text: 24, textSize: 28 };
const FIELD = { size: 32, name: 0, nameSize: 4, kind: 8, number: 16, text: 24, textSize: 28 };
const REQUEST = { size: 60, kind: 4, threads: 8, answers: 12 };

// The outputs of a request, in order, each with its array type and the number of elements per row.
const ANSWERS = {
  labels: [Uint32Array, (model) => model.nTargets],
  values: [Float64Array, (model) => model.nDecisions],
  bounds: [Float64Array, (model) => model.nDecisions],
  probabilities: [Float64Array, (model) => model.nProbabilities],
  probabilityBounds: [Float64Array, (model) => model.nProbabilities],
  certified: [Uint8Array, (model) => model.nTargets],
};

/** An error from the library. `code` is its APPROXSVM_... code, and `row` is the index of the faulty row, or -1. */
export class ApproxsvmError extends Error {
  constructor(message, code, row) {
    super(message);
    this.name = "ApproxsvmError";
    this.code = code;
    this.row = row;
  }
}

/**
 * Loads approxsvm.wasm.
 * @param {string | URL | Response | ArrayBuffer | ArrayBufferView | WebAssembly.Module} source
 * @returns {Promise<Runtime>}
 */
export async function loadRuntime(source) {
  if (typeof source === "string" || source instanceof URL) source = await fetch(source);
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new Error(`${source.url}: ${source.status} ${source.statusText}`);
    source = await source.arrayBuffer();
  }
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
  const { exports } = await WebAssembly.instantiate(module, {});
  exports._initialize();
  return new Runtime(exports);
}

/** The library with its own memory. All models of a runtime share it; each worker needs its own runtime. */
export class Runtime {
  #library;

  constructor(library) {
    this.#library = new Library(library);
  }

  /** Library version, such as "0.1.0". */
  get version() {
    return this.#library.text(this.#library.functions.approxsvm_version());
  }

  /**
   * Opens an artifact: validates and copies every byte.
   * @param {ArrayBuffer | ArrayBufferView} bytes
   * @returns {Model}
   */
  open(bytes) {
    return new Model(this.#library, bytes);
  }
}

/** An open model, which holds memory until close() or the end of its `using` block. */
export class Model {
  #library;
  #handle;

  /** Internal; use Runtime.open(). */
  constructor(library, bytes) {
    const artifact = ArrayBuffer.isView(bytes) ? bytes : isBuffer(bytes) ? new Uint8Array(bytes) : null;
    if (artifact === null)
      throw new TypeError(`open() needs the bytes of an artifact, an ArrayBuffer or a view of one, not ${nameOf(bytes)}`);
    this.#library = library;
    this.#handle = library.borrow((take) => {
      const handle = take(4);
      const copy = take(artifact.byteLength);
      library
        .view(Uint8Array, copy, artifact.byteLength)
        .set(new Uint8Array(artifact.buffer, artifact.byteOffset, artifact.byteLength));
      library.check((error) => library.functions.approxsvm_open_bytes(copy, artifact.byteLength, handle, error));
      return library.view(Uint32Array, handle, 1)[0];
    });
    const of = (what) => library.functions[`approxsvm_${what}`](this.#handle) >>> 0;
    /** "classification", "regression" or "one-class" */
    this.task = TASKS[of("task")];
    /** "approximate", "certified", "exact" or "ensemble" */
    this.mode = MODES[of("mode")];
    /** Number of values per row. */
    this.nFeatures = of("n_features");
    /** Number of labels per row: one per target. */
    this.nTargets = of("n_targets");
    /** Number of decision values per row: one per pair of classes if there are more than two; 0 if probabilities are
     * averaged. */
    this.nDecisions = of("n_decisions");
    /** Number of probabilities per row, in the order of `labels`; 0 if there are none. */
    this.nProbabilities = of("n_probabilities");
    /**
     * All labels (numbers or strings) in the model's order; 1 and -1 for one-class models, none for regressors.
     * Integers from 2^53 on are BigInts; if an integer is beyond int64, all labels are strings of digits.
     */
    this.labels = Object.freeze(Array.from({ length: of("n_labels") }, (_, position) => this.#label(position)));
    Object.freeze(this);
  }

  /**
   * The nTargets labels of each row, or a regressor's values.
   * @param {number[][] | Float32Array | Float64Array} rows
   * @returns {(number | string | bigint)[]}
   */
  predict(rows) {
    if (this.task === "regression") return Array.from(this.decisionValues(rows));
    return this.evaluate(rows, { labels: true }).labels;
  }

  /**
   * Decision values, nDecisions per row; a positive value favours the first of `labels` or, with one value per pair of
   * labels (0, 1), (0, 2), ..., the first label of the pair.
   * @returns {Float64Array}
   */
  decisionValues(rows) {
    return this.evaluate(rows, { values: true }).values;
  }

  /**
   * Probabilities, nProbabilities per row, in the order of `labels`.
   * @returns {Float64Array}
   */
  predictProbabilities(rows) {
    return this.evaluate(rows, { probabilities: true }).probabilities;
  }

  /**
   * Computes several outputs at once.
   * @param {number[][] | Float32Array | Float64Array} rows
   * @param {object} wanted fields that are true for the wanted outputs: labels; values; bounds, where |value - exact
   *   value| <= bound; probabilities; probabilityBounds; certified, which is 1 for rows whose label the first stage
   *   proves, regardless of the other outputs. `kind` selects the values: "promised", "settled" (cheap, within their
   *   bounds) or "exact".
   * @returns {object} an array for each wanted output, with the rows concatenated
   */
  evaluate(rows, wanted) {
    const { kind = "promised", ...answers } = wanted;
    const unknown = Object.keys(answers).find((name) => !(name in ANSWERS));
    if (unknown !== undefined || !(kind in VALUES)) throw new TypeError(`no answer is called ${unknown ?? kind}`);
    const numbers = flat(rows, this.nFeatures);
    const library = this.#library;
    const handle = this.#open();
    const found = library.borrow((take) => {
      const given = take(numbers.byteLength);
      const nRows = Math.floor(numbers.length / this.nFeatures);
      const rooms = Object.entries(ANSWERS).map(([name, [Array, perRow]]) => {
        const length = answers[name] ? nRows * perRow(this) : 0;
        // A requested buffer is non-null even if empty, so that the library reports whether the model has this output.
        return { name, Array, length, at: answers[name] ? take(length * Array.BYTES_PER_ELEMENT) : 0 };
      });
      const request = take(REQUEST.size);
      const words = [REQUEST.size, VALUES[kind], 1, ...rooms.flatMap(({ at, length }) => [at, length])];
      library.view(Uint32Array, request, words.length).set(words);
      library.view(numbers.constructor, given, numbers.length).set(numbers);
      const real = numbers instanceof Float32Array ? "f32" : "f64";
      const evaluate = library.functions[`approxsvm_evaluate_${real}`];
      library.check((error) => evaluate(handle, given, numbers.length, request, error));
      const filled = rooms.filter(({ at }) => at !== 0);
      return Object.fromEntries(filled.map(({ name, Array, at, length }) => [name, library.view(Array, at, length).slice()]));
    });
    if (found.labels) found.labels = Array.from(found.labels, (position) => this.labels[position]);
    return found;
  }

  /**
   * Converts a record, such as a parsed line of JSON, to a raw row for the other functions, like
   * approxsvm_row_of_record. Use it for models with string columns.
   * @param {object | Array} record the fields by column name, in any order; an array has all columns, in order. A field
   *   is a number, a string, or null or undefined for a missing value.
   * @returns {Float64Array} nFeatures numbers
   */
  rowOfRecord(record) {
    const isNamed = !Array.isArray(record);
    if (record === null || typeof record !== "object" || ArrayBuffer.isView(record))
      throw new TypeError(`a record is an object or an array, not ${nameOf(record)}`);
    const fields = Object.entries(record);
    const handle = this.#open();
    const library = this.#library;
    return library.borrow((take) => {
      const array = take(fields.length * FIELD.size);
      const row = take(this.nFeatures * Float64Array.BYTES_PER_ELEMENT);
      fields.forEach(([name, value], k) => {
        const kind = value === null || value === undefined ? 0 : { number: 1, string: 2 }[typeof value];
        if (kind === undefined) throw new TypeError(`field ${name} is ${nameOf(value)}, not a number, a string or null`);
        const [nameAt, nameSize] = isNamed ? library.copy(take, name) : [0, 0];
        const [textAt, textSize] = kind === 2 ? library.copy(take, value) : [0, 0];
        const field = library.view(DataView, array + k * FIELD.size, FIELD.size);
        field.setUint32(FIELD.name, nameAt, true);
        field.setUint32(FIELD.nameSize, nameSize, true);
        field.setInt32(FIELD.kind, kind, true);
        field.setFloat64(FIELD.number, kind === 1 ? value : 0, true);
        field.setUint32(FIELD.text, textAt, true);
        field.setUint32(FIELD.textSize, textSize, true);
      });
      const convert = library.functions.approxsvm_row_of_record;
      library.check((error) => convert(handle, array, fields.length, row, this.nFeatures, error));
      return library.view(Float64Array, row, this.nFeatures).slice();
    });
  }

  /** Frees the model's memory; the model cannot be used afterwards. */
  close() {
    this.#library.functions.approxsvm_close(this.#handle);
    this.#handle = 0;
  }

  #open() {
    if (this.#handle === 0) throw new TypeError("the model has been closed");
    return this.#handle;
  }

  #label(position) {
    const library = this.#library;
    return library.borrow((take) => {
      const at = take(LABEL.size);
      library.functions.approxsvm_label_at(this.#handle, position, at);
      const label = library.view(DataView, at, LABEL.size);
      const kind = label.getInt32(LABEL.kind, true);
      if (kind === 3) return library.text(label.getUint32(LABEL.text, true), label.getUint32(LABEL.textSize, true));
      if (kind === 2) return label.getFloat64(LABEL.real, true);
      const integer = label.getBigInt64(LABEL.integer, true);
      return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
    });
  }
}
if (Symbol.dispose) Model.prototype[Symbol.dispose] = Model.prototype.close;

// Returns the type of a value for messages: its class, or "string", "null", ...
function nameOf(value) {
  return value === null ? "null" : (typeof value === "object" && value.constructor?.name) || typeof value;
}

function isBuffer(value) {
  return value instanceof ArrayBuffer || (typeof SharedArrayBuffer !== "undefined" && value instanceof SharedArrayBuffer);
}

// Concatenates rows into one array.
function flat(rows, nFeatures) {
  if (rows instanceof Float32Array || rows instanceof Float64Array) return rows;
  if (!Array.isArray(rows))
    throw new TypeError(`rows must be arrays of numbers, a Float32Array or a Float64Array, not ${nameOf(rows)}`);
  const isRow = (row) => row?.length === nFeatures && row.every((number) => typeof number === "number");
  const wrong = rows.findIndex((row) => !isRow(row));
  if (wrong >= 0) throw new TypeError(`row ${wrong} is not an array of ${nFeatures} numbers`);
  const numbers = new Float64Array(rows.length * nFeatures);
  rows.forEach((row, i) => numbers.set(row, i * nFeatures));
  return numbers;
}

// The functions of approxsvm.wasm and its memory.
class Library {
  constructor(functions) {
    this.functions = functions;
  }

  // Returns a view of the current memory; the library's allocations may move it.
  view(View, at, length) {
    return new View(this.functions.memory.buffer, at, length);
  }

  // Returns the result of use(take). take(bytes) allocates memory, which is freed when use() returns.
  borrow(use) {
    const taken = [];
    try {
      return use((nBytes) => {
        const at = nBytes < 2 ** 31 ? this.functions.malloc(nBytes || 1) >>> 0 : 0;
        if (at === 0) throw new ApproxsvmError("out of memory", 2, -1);
        taken.push(at);
        return at;
      });
    } finally {
      for (const at of taken) this.functions.free(at);
    }
  }

  // Copies a string as UTF-8; returns the copy's address and number of bytes.
  copy(take, string) {
    const bytes = new TextEncoder().encode(string);
    const at = take(bytes.length);
    this.view(Uint8Array, at, bytes.length).set(bytes);
    return [at, bytes.length];
  }

  // Throws the error reported by call(error).
  check(call) {
    this.borrow((take) => {
      const at = take(ERROR.size);
      const code = call(at);
      if (code === 0) return;
      const row = Number(this.view(DataView, at, ERROR.size).getBigInt64(ERROR.row, true));
      throw new ApproxsvmError(this.text(at + ERROR.message), code, row);
    });
  }

  // Reads a UTF-8 string; without a size, up to a terminating 0.
  text(at, nBytes) {
    at >>>= 0;
    const bytes = new Uint8Array(this.functions.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, nBytes ?? bytes.indexOf(0)));
  }
}
