import { invalidParam } from '../protocol/index.ts';

/** Start of a page of results. */
export interface SearchPlace {
  /** For results ordered by time: only events with lower nids are on the page. */
  readonly before?: number;
  /** Number of results on earlier pages. */
  readonly skip?: number;
  /** The room whose group of results is continued. */
  readonly roomId?: string;
  /** The sender whose group of results is continued. */
  readonly sender?: string;
}

/** The letter is the kind of token, the digit its version. */
const prefix = 'r1_';

/** Encodes the start of a page as a pagination token. */
export const encodeSearchPlace = (place: SearchPlace): string =>
  prefix + Buffer.from(JSON.stringify(place)).toString('base64url');

/** Decodes a token of `encodeSearchPlace`. @throws MatrixError M_INVALID_PARAM for an invalid token */
export function decodeSearchPlace(token: string): SearchPlace {
  try {
    if (!token.startsWith(prefix)) throw new Error('another kind of token');
    const place: unknown = JSON.parse(Buffer.from(token.slice(prefix.length), 'base64url').toString());
    if (isSearchPlace(place)) return place;
  } catch {
    // Any malformed token is rejected below.
  }
  throw invalidParam('Invalid pagination token');
}

function isSearchPlace(value: unknown): value is SearchPlace {
  if (typeof value !== 'object' || value === null) return false;
  const { before, skip, roomId, sender } = value as Record<string, unknown>;
  const isNumber = (field: unknown) => field === undefined || Number.isSafeInteger(field);
  const isText = (field: unknown) => field === undefined || typeof field === 'string';
  return isNumber(before) && isNumber(skip) && isText(roomId) && isText(sender);
}
