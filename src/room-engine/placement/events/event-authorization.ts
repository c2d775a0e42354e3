import { authorize, checkAuthEvents, type RoomEvent, tooLongField } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { type AuthState, hasStorableKey, stateLookup, stateOfAuthEvents } from '../states/auth-state.ts';

/**
 * Returns why an event is rejected because of its own fields or by its auth events; `undefined` when it is not.
 * Source: server-server API, "Checks performed on receipt of a PDU", step 4.
 * @param auth all auth events, by event id
 */
export function rejectionByAuthEvents(
  event: RoomEvent,
  auth: ReadonlyMap<string, StoredEvent>,
): string | undefined {
  if (!hasStorableKey(event)) return 'its type or state key has a NUL character or an unpaired surrogate';
  const longField = tooLongField(event.pdu);
  if (longField !== undefined) return `its ${longField} has more than 255 bytes`;
  const listVerdict = checkAuthEvents(event, {
    event: (eventId) => auth.get(eventId)?.event,
    isRejected: (eventId) => auth.get(eventId)?.rejected === true,
  });
  if (!listVerdict.allowed) return listVerdict.reason;
  const verdict = authorize(event, stateLookup(stateOfAuthEvents(auth.values())));
  return verdict.allowed ? undefined : verdict.reason;
}

/** Returns why a state does not allow an event; `undefined` when it allows it. */
export function rejectionByState(event: RoomEvent, state: AuthState): string | undefined {
  const verdict = authorize(event, stateLookup(state));
  return verdict.allowed ? undefined : verdict.reason;
}
