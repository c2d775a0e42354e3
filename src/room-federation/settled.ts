import { canonicalJson } from '../protocol/index.ts';
import type { StoredEvent, VerifiedEvent } from '../room-engine/index.ts';

/** Whether nothing is left to be done for an event: the state after it is known, even if it was rejected. */
export const hasState = ({ stateGroup }: StoredEvent) => stateGroup !== undefined;

/** An event that is stored was checked before. */
export function asVerified({ event }: StoredEvent): VerifiedEvent {
  return { event, json: canonicalJson(event.pdu, 'as written') };
}
