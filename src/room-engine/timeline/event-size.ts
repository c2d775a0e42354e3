import { sizeOfJson } from '../../kernel/caches/index.ts';
import type { StoredEvent } from '../stored-event.ts';

/** Estimated bytes of an event besides its content and references: ids, hashes, signatures and other fields. */
const fixedBytes = 1_500;

/** Estimated bytes of a reference to another event, which some room versions write with a hash. */
const referenceBytes = 100;

/**
 * Estimates the bytes of a cached event. Its content counts twice, because the text that clients receive is cached
 * as long as the event.
 */
export function sizeOfEvent({ event }: StoredEvent): number {
  const references = event.authEventIds.length + event.prevEventIds.length;
  return fixedBytes + referenceBytes * references + 2 * sizeOfJson(event.content);
}
