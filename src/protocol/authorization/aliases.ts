import type { RoomEvent } from '../event.ts';
import { domainOf } from './room-state.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/**
 * v1 rule 4, `m.room.aliases` up to v5; the sender need not be in the room:
 * - v1 4.1: rejects an event without state key.
 * - v1 4.2: rejects a state key that is not the server of the sender.
 * - v1 4.3: allows any other `m.room.aliases` event.
 */
export function authorizeAliases(event: RoomEvent): Verdict {
  // v1 4.1
  if (event.stateKey === undefined) return reject('The event has no state key');
  // v1 4.2
  if (domainOf(event.sender) !== event.stateKey)
    return reject('The state key is not the server of the sender');
  // v1 4.3
  return allow();
}
