import { authorize, checkAuthEvents, type RoomEvent } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { type AuthState, hasStorableKey, stateLookup, stateOfAuthEvents } from '../states/auth-state.ts';

/**
 * Why an event is rejected by what it names as its auth events; `undefined` when it is not.
 * Source: server-server API, "Checks performed on receipt of a PDU", step 4.
 * @param auth its auth events by id, all of them
 */
export function rejectionByAuthEvents(
  event: RoomEvent,
  auth: ReadonlyMap<string, StoredEvent>,
): string | undefined {
  if (!hasStorableKey(event)) return 'its type or state key is not text';
  const list = checkAuthEvents(event, {
    event: (eventId) => auth.get(eventId)?.event,
    isRejected: (eventId) => auth.get(eventId)?.rejected === true,
  });
  if (!list.allowed) return list.reason;
  const verdict = authorize(event, stateLookup(stateOfAuthEvents(auth.values())));
  return verdict.allowed ? undefined : verdict.reason;
}

/** Why a state does not allow an event; `undefined` when it does. */
export function rejectionByState(event: RoomEvent, state: AuthState): string | undefined {
  const verdict = authorize(event, stateLookup(state));
  return verdict.allowed ? undefined : verdict.reason;
}
