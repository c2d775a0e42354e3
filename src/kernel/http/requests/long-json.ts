import { badJson, type JsonValue } from '../../../protocol/index.ts';
import { type JsonBounds, type JsonScan, parseInSlices } from '../../json/index.ts';
import type { TimeSlices } from '../../time-slices.ts';
import {
  clientJsonLimits,
  type JsonLimits,
  parseJson,
  parseServerBody,
  serverJsonLimits,
  withoutUnusableItems,
} from './json-body.ts';

/** Maximum bytes of a body that is parsed in one go, whatever it contains: a few milliseconds of work. */
export const maxShortBytes = 64 * 1024;

/** Maximum bytes of a body that is parsed in one go after a `JsonScan` has measured it. */
const maxBytesAtOnce = 256 * 1024;

/** Maximum number of values of a body that is parsed in one go after a `JsonScan` has measured it. */
const maxValuesAtOnce = 15_000;

/** Bounds of a client's JSON: several times what 4 MiB of encrypted messages, or 16 MiB of room keys, contain. */
export const clientJsonBounds: JsonBounds = {
  values: 300_000,
  containers: 60_000,
  stringBytes: 4 * 1024 * 1024,
};

/**
 * Bounds of another server's JSON. Events of 64 KiB may consist of numbers or of empty lists, and a
 * transaction may have 50 events that its sender did not write: their content must not be a reason to refuse the
 * transaction.
 */
export const serverJsonBounds: JsonBounds = { values: 2_300_000, containers: 1_200_000, members: 50_000 };

const isShort = ({ bytes, values }: JsonScan) => bytes <= maxBytesAtOnce && values <= maxValuesAtOnce;

/** Parses the body of a client, which `scan` has measured. @throws MatrixError as `parseJson` */
export async function parseLongJson(bytes: Buffer, scan: JsonScan, slices: TimeSlices): Promise<unknown> {
  if (isShort(scan)) return parseJson(bytes, clientJsonLimits);
  if (scan.maxDepth > clientJsonLimits.depth) {
    throw badJson(`The body is nested deeper than ${clientJsonLimits.depth} levels`);
  }
  return inSlices(bytes, clientJsonLimits, slices);
}

/** The body of another server. */
export interface LongServerBody {
  readonly value: unknown;
  /** Whether `value` contains all of the body. */
  readonly isWhole: boolean;
}

/**
 * Parses the body of another server, which `scan` has measured. Items that are too deep or too long, and EDUs with too
 * many values, become null.
 * @throws MatrixError as `parseJson`
 */
export async function parseLongServerBody(
  bytes: Buffer,
  scan: JsonScan,
  slices: TimeSlices,
): Promise<LongServerBody> {
  if (isShort(scan)) {
    const { value, text } = parseServerBody(bytes);
    return { value, isWhole: text === undefined };
  }
  const usable = await slices.run(withoutUnusableItems(bytes, serverJsonLimits.depth));
  const value = await inSlices(usable, serverJsonLimits, slices);
  return { value, isWhole: usable === bytes };
}

function inSlices(bytes: Buffer, limits: JsonLimits, slices: TimeSlices): Promise<unknown> {
  const parse = (piece: Buffer) => parseJson(piece, limits) as JsonValue;
  return parseInSlices(bytes, { parse, maxDepth: limits.depth, slices });
}
