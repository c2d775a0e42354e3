import { notFound, selectAuthEventKeys } from '../../../protocol/index.ts';
import { composeWithLinks, maxPrevEvents } from '../../timeline/compose-event.ts';
import type { EventToSend } from '../../timeline/event-to-send.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { authStateInGroup } from '../states/auth-state.ts';
import { type BeforeStates, extremityGroups } from '../states/before-state.ts';
import type { VerifiedEvent } from '../verified-event.ts';

/**
 * An event of a local user after the deepest ends of a history that has more of them than one event may name. The
 * state before it is what those resolve to, which need not be the current one.
 * @throws MatrixError M_NOT_FOUND, M_TOO_LARGE, M_BAD_JSON
 */
export async function buildOverManyExtremities(
  deps: PlacementDeps,
  before: BeforeStates,
  roomId: string,
  draft: EventToSend,
): Promise<VerifiedEvent> {
  const head = await deps.heads.get(roomId);
  if (!head) throw notFound('Unknown room');
  const { version } = head;
  const prev = [...head.extremities].sort((a, b) => b.depth - a.depth).slice(0, maxPrevEvents);
  const state = await before.afterGroups(version, extremityGroups({ extremities: prev }), head);
  try {
    const subject = { ...draft, stateKey: draft.stateKey, version };
    const authState = await authStateInGroup(deps, subject, state.id);
    const auth = selectAuthEventKeys(subject, version).map((key) => authState.get(key));
    const named = await deps.events.getMany(prev.map(({ nid }) => nid));
    const all = [...named.values(), ...authState.values()];
    const authEventIds = auth.map((stored) => stored?.event.eventId).filter((id) => id !== undefined);
    const unsigned = composeWithLinks(
      deps,
      draft,
      version,
      { roomId, prev, authEventIds },
      {
        byId: (eventId) => all.find((stored) => stored.event.eventId === eventId)?.event,
      },
    );
    const { key } = deps.signer;
    return { event: unsigned.event, json: unsigned.complete(key.sign(unsigned.signingInput)) };
  } finally {
    // They are made again when the event gets its place.
    before.drop(state.newGroups);
  }
}
