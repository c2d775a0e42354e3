import type { RoomEvent } from '../event.ts';
import type { PowerLevels } from '../power-levels/index.ts';
import { domainOf } from './room-state.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/**
 * v1 rule 11, `m.room.redaction` in v1 and v2:
 * - v1 11.1: allows a sender who reaches the redact level.
 * - v1 11.2: allows the redaction if both event ids name the same server: the event and its redaction are from one
 *   server.
 * - v1 11.3: rejects any other redaction.
 */
export function authorizeRedaction(event: RoomEvent, levels: PowerLevels): Verdict {
  // v1 11.1
  if (levels.reaches(event.sender, 'redact')) return allow();
  // v1 11.2
  const domain = domainOf(event.eventId);
  if (domain !== undefined && event.redacts !== undefined && domainOf(event.redacts) === domain)
    return allow();
  // v1 11.3
  return reject('The sender may not redact events of other servers');
}
