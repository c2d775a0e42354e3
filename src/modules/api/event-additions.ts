import type { JsonObject } from '../../protocol/index.ts';
import type { NewEvent } from './rooms.ts';

/** Adds fields to events as clients receive them. */
export interface EventAdditions {
  /**
   * Returns fields for the `unsigned` of an event, when the server renders it for clients. The function should answer from memory.
   * All members of a room may receive the same rendering. It cannot replace fields of the server; where modules return the
   * same field, the last module counts. When it fails for one event, the module adds nothing to the events of the request.
   */
  unsigned?(event: NewEvent): JsonObject | undefined | Promise<JsonObject | undefined>;
}
