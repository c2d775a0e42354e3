import { decodePosition } from '../../kernel/streams/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { HistoryPlace } from '../../room-engine/index.ts';

/**
 * A place in a room's history by stream position: all events up to the position, of any depth, are before the place.
 */
export interface StreamPlace {
  readonly position: number;
}

/** A place in a room's history; `split` is present if the place was reached by reading from a `StreamPlace`. */
export interface SplitPlace extends HistoryPlace {
  /**
   * The stream position where reading began: backward pages have only events up to this position, and forward pages
   * only later events.
   */
  readonly split?: number | undefined;
}

const placePattern = /^t1_(\d{1,16})_(-?\d{1,16})(?:_(\d{1,16}))?$/;
const positionPattern = /^t2_(\d{1,16})$/;

/**
 * Encodes a place in a room's history as a pagination token, for instance `t1_12_4711`, `t1_12_4711_4800` or, for
 * a position on the stream, `t2_4800`.
 */
export function encodePlace(place: SplitPlace | StreamPlace): string {
  if ('position' in place) return `t2_${Math.max(0, place.position)}`;
  const { depth, stream, split } = place;
  return split === undefined ? `t1_${depth}_${stream}` : `t1_${depth}_${stream}_${split}`;
}

/**
 * Decodes a token of `encodePlace`, or a token of /sync, which is a stream position.
 * @throws MatrixError M_INVALID_PARAM for other tokens
 */
export function decodePlace(token: string): SplitPlace | StreamPlace {
  if (!token.startsWith('t')) return { position: decodePosition(token) };
  const [, position] = positionPattern.exec(token) ?? [];
  if (position !== undefined && Number.isSafeInteger(Number(position))) return { position: Number(position) };
  const [, depth, stream, splitText] = placePattern.exec(token) ?? [];
  const split = splitText === undefined ? undefined : Number(splitText);
  const place = { depth: Number(depth), stream: Number(stream), ...(split !== undefined && { split }) };
  if (!Object.values(place).every(Number.isSafeInteger)) throw invalidParam('Invalid pagination token');
  return place;
}

/** Returns the place directly before an event. */
export function placeBefore(event: { depth: number }, stream: number): HistoryPlace {
  return { depth: event.depth, stream: stream - 1 };
}
