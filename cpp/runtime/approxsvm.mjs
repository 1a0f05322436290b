/**
 * approxsvm in JavaScript: a compiled kernel machine (.asvm) that predicts in browsers, workers and Node.js, without a
 * server. approxsvm.wasm is the C library of approxsvm.h; this file puts its functions into classes.
 *
 *     import { loadRuntime } from "./approxsvm.mjs";
 *
 *     const runtime = await loadRuntime(new URL("approxsvm.wasm", import.meta.url));
 *     const model = runtime.open(await (await fetch("model.asvm")).arrayBuffer());
 *     model.predict([[5.1, 3.5, 1.4, 0.2]]);              // ["setosa"]
 *     const { labels, certified } = model.evaluate(rows, { labels: true, certified: true });
 *     model.close();
 *
 * Rows are those that the source model takes, before any scaling of its own: arrays of numbers, or a Float32Array or
 * Float64Array of one row after the other. What the library refuses is thrown as an ApproxsvmError with its own words;
 * nothing is changed by that, and the model may be used on.
 */

const TASKS = ["classification", "regression", "one-class"];
const MODES = ["approximate", "certified", "exact", "ensemble"];
const VALUES = { promised: 0, settled: 1, exact: 2 };

// Structs of approxsvm.h, in bytes, with pointers and sizes of four.
const ERROR = { size: 272, status: 0, row: 8, message: 32 };
const LABEL = { size: 32, kind: 0, integer: 8, real: 16, text: 24, textSize: 28 };
const REQUEST = { size: 60, kind: 4, threads: 8, answers: 12 };

// The answers in a request, in their order: what they are made of, and how many of it a row has.
const ANSWERS = {
  labels: [Uint32Array, (model) => model.nTargets],
  values: [Float64Array, (model) => model.nDecisions],
  bounds: [Float64Array, (model) => model.nDecisions],
  probabilities: [Float64Array, (model) => model.nProbabilities],
  probabilityBounds: [Float64Array, (model) => model.nProbabilities],
  certified: [Uint8Array, (model) => model.nTargets],
};

/** What the library refuses. `code` is its APPROXSVM_... number, `row` the row that is to blame, or -1. */
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

/** The library with a memory of its own. Models of one runtime share it; another worker needs another. */
export class Runtime {
  #library;

  constructor(library) {
    this.#library = new Library(library);
  }

  /** Of the library, such as "0.1.0". */
  get version() {
    return this.#library.text(this.#library.functions.approxsvm_version());
  }

  /**
   * Opens an artifact: checks every byte of it and copies it.
   * @param {ArrayBuffer | ArrayBufferView} bytes
   * @returns {Model}
   */
  open(bytes) {
    return new Model(this.#library, bytes);
  }
}

/** An open model. It holds memory until close(), or the end of its `using` block. */
export class Model {
  #library;
  #handle;

  /** Use Runtime.open(). */
  constructor(library, bytes) {
    const artifact = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
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
    /** Numbers of a row. */
    this.nFeatures = of("n_features");
    /** Labels of a row: 1, or one for each of several targets. */
    this.nTargets = of("n_targets");
    /** Decision values of a row: one for each pair of several classes; 0 where probabilities are averaged. */
    this.nDecisions = of("n_decisions");
    /** Probabilities of a row, in the order of `labels`; 0 for none. */
    this.nProbabilities = of("n_probabilities");
    /** All labels, numbers or strings, in the model's order; of a one-class model 1 and -1, of a regression none. */
    this.labels = Object.freeze(Array.from({ length: of("n_labels") }, (_, position) => this.#label(position)));
    Object.freeze(this);
  }

  /**
   * The label of each row, nTargets of them; of a regression its value.
   * @param {number[][] | Float32Array | Float64Array} rows
   * @returns {(number | string | bigint)[]}
   */
  predict(rows) {
    if (this.task === "regression") return Array.from(this.decisionValues(rows));
    return this.evaluate(rows, { labels: true }).labels;
  }

  /**
   * Decision values, nDecisions for each row, positive for the first of `labels`, or of a pair (0, 1), (0, 2), ...
   * @returns {Float64Array}
   */
  decisionValues(rows) {
    return this.evaluate(rows, { values: true }).values;
  }

  /**
   * Probabilities, nProbabilities for each row, in the order of `labels`.
   * @returns {Float64Array}
   */
  predictProbabilities(rows) {
    return this.evaluate(rows, { probabilities: true }).probabilities;
  }

  /**
   * Several answers at once.
   * @param {number[][] | Float32Array | Float64Array} rows
   * @param {object} wanted true for each of: labels; values and bounds, |value - exact value| <= bound; probabilities
   *   and probabilityBounds; certified, 1 for rows whose label the first stage proved. `kind` says which values:
   *   "promised", "settled" (cheap, as close as the bounds say) or "exact".
   * @returns {object} an array for each, row after row
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
        // Not null, though empty, where it is wanted: whether the model has it is the library's to say.
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

  /** Gives the memory back. The model cannot be used any more. */
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

// Rows one after the other.
function flat(rows, nFeatures) {
  if (rows instanceof Float32Array || rows instanceof Float64Array) return rows;
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

  // A view into the memory as it is now: the library's own allocations may move it.
  view(View, at, length) {
    return new View(this.functions.memory.buffer, at, length);
  }

  // What use(take) returns; take(bytes) gives memory until then.
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

  // Throws what call(error) says.
  check(call) {
    this.borrow((take) => {
      const at = take(ERROR.size);
      const code = call(at);
      if (code === 0) return;
      const row = Number(this.view(DataView, at, ERROR.size).getBigInt64(ERROR.row, true));
      throw new ApproxsvmError(this.text(at + ERROR.message), code, row);
    });
  }

  // UTF-8, up to a 0 where no size is given.
  text(at, nBytes) {
    at >>>= 0;
    const bytes = new Uint8Array(this.functions.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, nBytes ?? bytes.indexOf(0)));
  }
}
