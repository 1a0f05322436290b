/**
 * Converts a LIBSVM model file to an artifact of mode "exact" in the browser, to try it without Python.
 *
 *     import { artifactOf, parseModel } from "./libsvm_model.mjs";
 *     const model = runtime.open(artifactOf(parseModel(text)));
 *
 * Supports RBF kernels, classification, regression and one-class models; ignores the file's probabilities. To compile
 * models with expansions and certified labels, use the Python package. The layout is that of models/FORMAT.md.
 */

const SVM_TYPES = { c_svc: 0, nu_svc: 0, epsilon_svr: 1, nu_svr: 1, one_class: 2 };
const SECTIONS = { center: 1, decisions: 2, labels: 10, classCounts: 14, dualCoef: 16, supportVectors: 17, checkRows: 18 };
const HEADER_BYTES = 192;

/**
 * @param {string} text a model file
 * @returns {object} its numbers; nFeatures is the largest index
 */
export function parseModel(text) {
  const lines = text.split(/\r?\n/);
  const start = lines.findIndex((line) => line.trim() === "SV");
  if (start < 0) throw new TypeError("this is no LIBSVM model: it has no line SV");
  const said = Object.fromEntries(lines.slice(0, start).map((line) => [line.split(" ")[0], line.trim().split(" ").slice(1)]));
  const type = said.svm_type?.[0];
  if (!(type in SVM_TYPES)) throw new TypeError(`svm_type is ${type}, expected one of ${Object.keys(SVM_TYPES).join(", ")}`);
  if (said.kernel_type?.[0] !== "rbf") throw new TypeError(`kernel_type is ${said.kernel_type?.[0]}, expected rbf`);
  if (said.scaling) throw new TypeError("the model scales its rows (a line scaling): compile it with the Python package");
  const labels = SVM_TYPES[type] === 0 ? said.label.map(Number) : [];
  const nCoef = Math.max(labels.length - 1, 1);
  const vectors = lines.slice(start + 1).filter((line) => line.trim() !== "").map((line, i) => {
    const words = line.trim().split(/\s+/);
    const entries = words.slice(nCoef).map((word) => word.split(":").map(Number));
    const numbers = [...words.slice(0, nCoef).map(Number), ...entries.flat()];
    if (!numbers.every(Number.isFinite)) throw new TypeError(`support vector ${i + 1} is not made of finite numbers`);
    return { coef: numbers.slice(0, nCoef), entries };
  });
  const gamma = Number(said.gamma?.[0]);
  if (!(gamma > 0 && gamma < Infinity)) throw new TypeError(`gamma is ${said.gamma?.[0]}, expected a number above 0`);
  const nFeatures = vectors.reduce((most, { entries }) => entries.reduce((m, [index]) => Math.max(m, index), most), 1);
  const counts = labels.length ? said.nr_sv.map(Number) : [vectors.length];
  return { type, task: SVM_TYPES[type], gamma, labels, counts, rho: said.rho.map(Number), vectors, nFeatures };
}

/**
 * @param {object} model result of parseModel
 * @param {number} nFeatures columns of rows, if more than the model uses
 * @returns {Uint8Array} an artifact
 */
export function artifactOf(model, nFeatures = model.nFeatures) {
  const n = model.vectors.length;
  const x = new Float64Array(n * nFeatures);
  model.vectors.forEach(({ entries }, i) => entries.forEach(([index, number]) => (x[i * nFeatures + index - 1] = number)));
  const center = new Float32Array(nFeatures);
  for (let j = 0; j < nFeatures; ++j) {
    let sum = 0;
    for (let i = 0; i < n; ++i) sum += x[i * nFeatures + j];
    center[j] = n ? sum / n : 0;
  }
  const squares = (from) => model.vectors.map((_, i) => from.reduce((sum, c, j) => sum + (x[i * nFeatures + j] - c) ** 2, 0));
  const aboutCenter = squares(center);
  const kernels = aboutCenter.map((square) => Math.exp(-model.gamma * square));
  // The coefficients of each decision function: all of them, or those of a pair of classes.
  const starts = model.counts.reduce((list, count) => [...list, list.at(-1) + count], [0]);
  const pairs = model.labels.length > 2
    ? model.labels.flatMap((_, i) => model.labels.slice(i + 1).map((_, k) => [i, i + 1 + k]))
    : [null];
  const functions = pairs.map((pair, k) => {
    const found = { intercept: -model.rho[k], moduli: 0, value: -model.rho[k] };
    const add = (i, row) => {
      found.moduli += Math.abs(model.vectors[i].coef[row]);
      found.value += model.vectors[i].coef[row] * kernels[i];
    };
    if (pair === null) for (let i = 0; i < n; ++i) add(i, 0);
    else {
      for (let i = starts[pair[0]]; i < starts[pair[0] + 1]; ++i) add(i, pair[1] - 1);
      for (let i = starts[pair[1]]; i < starts[pair[1] + 1]; ++i) add(i, pair[0]);
    }
    found.moduli *= 1 + 1e-9; // an upper bound, rounding included; the norm of the function is not larger
    return found;
  });
  const packed = new DataView(new ArrayBuffer(24 + 8 * x.length));
  packed.setBigUint64(16, BigInt(x.length), true); // all values as float64, row-major
  new Float64Array(packed.buffer, 24).set(x);
  const nCoef = Math.max(model.labels.length - 1, 1);
  const first = functions[0];
  const sections = {
    center,
    decisions: Float64Array.from(functions.flatMap(({ intercept, moduli }) => [intercept, moduli, moduli, 0])),
    ...(model.labels.length ? { labels: BigInt64Array.from(model.labels.map(BigInt)) } : {}),
    ...(model.labels.length > 2 ? { classCounts: Uint32Array.from(model.counts) } : {}),
    dualCoef: Float64Array.from(Array.from({ length: nCoef }, (_, row) => model.vectors.map(({ coef }) => coef[row])).flat()),
    supportVectors: packed,
    // One row, the center itself, with the value of the first function there.
    checkRows: Float64Array.of(0, first.value, 1e-10 * (first.moduli + Math.abs(first.intercept) + 1e-300)),
  };
  const inputScale = 2 ** Math.floor(Math.log2(2 * model.gamma) / 2);
  return fileOf(sections, (view) => {
    view.setUint32(28, model.task, true);
    view.setUint32(32, 2, true); // exact
    view.setBigUint64(40, BigInt(nFeatures), true);
    view.setBigUint64(48, BigInt(n), true);
    view.setUint32(56, 1, true);
    view.setUint32(60, model.labels.length, true);
    const norm = (list) => Math.sqrt(list.reduce((most, square) => Math.max(most, square), 0)) * (1 + 1e-9);
    const numbers = [model.gamma, inputScale, Infinity, norm(aboutCenter), norm(squares(new Float32Array(nFeatures)))];
    numbers.forEach((number, k) => view.setFloat64(64 + 8 * k, number, true));
    view.setUint32(108, functions.length, true);
    view.setUint32(116, 1, true); // center is the mean
    if (model.labels.length) {
      view.setUint32(120, 1, true);
      writeText(view, 124, "<i8");
    }
    writeText(view, 144, `libsvm ${model.type}`);
    view.setBigUint64(176, BigInt(nFeatures), true);
  });
}

// Joins header, table and sections, with sizes and checksum.
function fileOf(sections, writeHeader) {
  const parts = Object.entries(sections);
  const places = [];
  let end = HEADER_BYTES + 24 * parts.length;
  for (const [, part] of parts) {
    places.push(Math.ceil(end / 64) * 64);
    end = places.at(-1) + part.byteLength;
  }
  const file = new Uint8Array(Math.ceil(end / 64) * 64);
  const view = new DataView(file.buffer);
  file.set([0x89, 0x41, 0x53, 0x56, 0x4d, 0x0d, 0x0a, 0x1a]);
  view.setUint16(8, 1, true);
  view.setUint16(10, 1, true);
  view.setUint32(12, parts.length, true);
  view.setBigUint64(16, BigInt(file.length), true);
  writeHeader(view);
  parts.forEach(([name, part], k) => {
    view.setUint32(HEADER_BYTES + 24 * k, SECTIONS[name], true);
    view.setBigUint64(HEADER_BYTES + 24 * k + 8, BigInt(places[k]), true);
    view.setBigUint64(HEADER_BYTES + 24 * k + 16, BigInt(part.byteLength), true);
    file.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), places[k]);
  });
  view.setUint32(24, crc32(file), true);
  return file;
}

function writeText(view, at, text) {
  new TextEncoder().encode(text).forEach((byte, k) => view.setUint8(at + k, byte));
}

function crc32(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let c = byte;
    for (let bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    return c;
  });
  let crc = 0xffffffff;
  for (const byte of bytes) crc = table[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
