import { notFound, selectAuthEventKeys } from '../../../protocol/index.ts';
import type { EventToSend } from '../../event-to-send.ts';
import { composeWithLinks, maxPrevEvents } from '../../timeline/compose-event.ts';
import type { VerifiedEvent } from '../../verified-event.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { authStateInGroup } from '../states/auth-state.ts';
import { type BeforeStates, extremityGroups } from '../states/before-state.ts';

/**
 * Composes and signs an event of a local user in a room with more than `maxPrevEvents` forward extremities. The
 * previous events of the event are the deepest extremities. The state before the event is resolved from these alone, so
 * it may differ from the current state. The event is neither authorized nor stored.
 * @throws MatrixError M_NOT_FOUND, M_TOO_LARGE, M_BAD_JSON
 */
export async function buildOverManyExtremities(
  deps: PlacementDeps,
  beforeStates: BeforeStates,
  roomId: string,
  draft: EventToSend,
): Promise<VerifiedEvent> {
  const head = await deps.heads.get(roomId);
  if (!head) throw notFound('Unknown room');
  const { version } = head;
  const prev = [...head.extremities].sort((a, b) => b.depth - a.depth).slice(0, maxPrevEvents);
  const state = await beforeStates.afterGroups(version, extremityGroups({ extremities: prev }), head);
  try {
    const subject = { ...draft, stateKey: draft.stateKey, version };
    const authState = await authStateInGroup(deps, subject, state.id);
    const auth = selectAuthEventKeys(subject, version).map((key) => authState.get(key));
    const prevEvents = await deps.events.getMany(prev.map(({ nid }) => nid));
    const candidates = [...prevEvents.values(), ...authState.values()];
    const authEventIds = auth.map((stored) => stored?.event.eventId).filter((id) => id !== undefined);
    const unsigned = composeWithLinks(
      deps,
      draft,
      version,
      { roomId, prev, authEventIds },
      {
        byId: (eventId) => candidates.find((stored) => stored.event.eventId === eventId)?.event,
      },
    );
    const { key } = deps.signer;
    return { event: unsigned.event, json: unsigned.complete(key.sign(unsigned.signingInput)) };
  } finally {
    // The new groups are not stored: they are created again when the event is placed.
    beforeStates.drop(state.newGroups);
  }
}
