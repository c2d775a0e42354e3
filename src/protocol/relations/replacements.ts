import type { RoomEvent } from '../event.ts';
import { relationOf } from './relation.ts';

/** The part of an event that decides whether replacements are valid. */
export type ReplaceableEvent = Pick<
  RoomEvent,
  'eventId' | 'roomId' | 'type' | 'stateKey' | 'sender' | 'content'
>;
export type ReplacementEvent = ReplaceableEvent & Pick<RoomEvent, 'originServerTs'>;

/**
 * Whether an event is a valid replacement of another. The encrypted content of a replacement cannot be
 * checked.
 * Source: client-server API, "Validity of replacement events".
 */
export function isValidReplacement(original: ReplaceableEvent, edit: ReplaceableEvent): boolean {
  const relation = relationOf(edit.content);
  return (
    relation?.relType === 'm.replace' &&
    relation.eventId === original.eventId &&
    original.roomId === edit.roomId &&
    original.sender === edit.sender &&
    original.type === edit.type &&
    original.stateKey === undefined &&
    edit.stateKey === undefined &&
    relationOf(original.content)?.relType !== 'm.replace' &&
    (edit.type === 'm.room.encrypted' || Object.hasOwn(edit.content, 'm.new_content'))
  );
}

/**
 * Compares replacements of one event by `origin_server_ts`, then by event id: negative if `a` is older than
 * `b`.
 * Source: client-server API, "Server-side aggregation of m.replace relationships".
 */
export function compareReplacements(
  a: Pick<ReplacementEvent, 'eventId' | 'originServerTs'>,
  b: Pick<ReplacementEvent, 'eventId' | 'originServerTs'>,
): number {
  if (a.originServerTs !== b.originServerTs) return a.originServerTs - b.originServerTs;
  if (a.eventId === b.eventId) return 0;
  return a.eventId < b.eventId ? -1 : 1;
}

/**
 * Returns the replacement to bundle with an event: the most recent valid one, or `undefined` if there is none or the
 * original is redacted. The candidates must not include redacted replacements: a redaction removes the relation.
 * Source: client-server API, "Server-side aggregation of m.replace relationships".
 */
export function latestReplacement<Edit extends ReplacementEvent>(
  original: ReplaceableEvent,
  originalIsRedacted: boolean,
  candidates: Iterable<Edit>,
): Edit | undefined {
  if (originalIsRedacted) return undefined;
  let latest: Edit | undefined;
  for (const candidate of candidates) {
    if (!isValidReplacement(original, candidate)) continue;
    if (latest === undefined || compareReplacements(latest, candidate) < 0) latest = candidate;
  }
  return latest;
}
