import { decodePosition } from '../../kernel/streams/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { HistoryPlace } from '../../room-engine/index.ts';

const form = /^t1_(\d{1,16})_(-?\d{1,16})$/;

/** Encodes a place in a room's history as a pagination token, for instance `t1_12_4711`. */
export function encodePlace({ depth, stream }: HistoryPlace): string {
  return `t1_${depth}_${stream}`;
}

/**
 * Decodes a token of `encodePlace`, or a token of /sync, which is a stream position.
 * @throws MatrixError M_INVALID_PARAM for other tokens
 */
export function decodePlace(token: string): HistoryPlace | { readonly position: number } {
  if (!token.startsWith('t')) return { position: decodePosition(token) };
  const [, depth, stream] = form.exec(token) ?? [];
  const place = { depth: Number(depth), stream: Number(stream) };
  if (!Number.isSafeInteger(place.depth) || !Number.isSafeInteger(place.stream)) {
    throw invalidParam('Invalid pagination token');
  }
  return place;
}

/** The place directly before an event. */
export function placeBefore(event: { depth: number }, stream: number): HistoryPlace {
  return { depth: event.depth, stream: stream - 1 };
}
