import { canonicalJson } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../placement/verified-event.ts';
import type { StoredEvent } from '../stored-event.ts';

/** Whether nothing is left to be done for an event: it has its place with its state, or will never have one. */
export const isSettled = ({ stateGroup, rejected }: StoredEvent) => stateGroup !== undefined || rejected;

/** An event that is stored was checked before. */
export function verifiedAgain({ event }: StoredEvent): VerifiedEvent {
  return { event, json: canonicalJson(event.pdu, 'as written') };
}
