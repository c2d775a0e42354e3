export { isJsonObject } from '../json.ts';
export {
  type CanonicalNumbers,
  canonicalJson,
  canonicalString,
  compareCodePoints,
} from './canonical-json.ts';
export { canonicalJsonPieces } from './canonical-pieces.ts';
export { exceedsDepth } from './depth.ts';
export { endOfString, indexOfQuote, quoteByte } from './end-of-string.ts';
export { type ParseOptions, parseJson, parseJsonObject } from './parse-json.ts';
export { isRawNumber, numberOf, type RawNumber } from './raw-number.ts';
