import { decodePosition } from '../../kernel/streams/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { HistoryPlace } from '../../room-engine/index.ts';

const form = /^t1_(\d{1,16})_(-?\d{1,16})$/;

/** A place in a room's history as clients hold it, for instance `t1_12_4711`. */
export function encodePlace({ depth, stream }: HistoryPlace): string {
  return `t1_${depth}_${stream}`;
}

/**
 * Reads a token of `encodePlace`, or one of sync, which stands for a position on the stream.
 * @throws MatrixError M_INVALID_PARAM when it is neither
 */
export function decodePlace(token: string): HistoryPlace | { readonly position: number } {
  if (!token.startsWith('t')) return { position: decodePosition(token) };
  const [, depth, stream] = form.exec(token) ?? [];
  const place = { depth: Number(depth), stream: Number(stream) };
  if (!Number.isSafeInteger(place.depth) || !Number.isSafeInteger(place.stream)) {
    throw invalidParam('This is not a token of this server');
  }
  return place;
}

/** The place just before an event. */
export function placeBefore(event: { depth: number }, stream: number): HistoryPlace {
  return { depth: event.depth, stream: stream - 1 };
}
