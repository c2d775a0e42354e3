export { type JsonBounds, JsonScan } from './json-scan.ts';
export { parseInSlices } from './parse-in-slices.ts';
