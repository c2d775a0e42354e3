import type { RoomEvent } from '../event.ts';
import { domainOf } from './room-state.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/** v1 rule 4, v1 to v5: `m.room.aliases`, which a server may send without being in the room. */
export function authorizeAliases(event: RoomEvent): Verdict {
  // v1 4.1
  if (event.stateKey === undefined) return reject('there is no state key');
  // v1 4.2
  if (domainOf(event.sender) !== event.stateKey)
    return reject('the state key is not the server of the sender');
  // v1 4.3
  return allow();
}
