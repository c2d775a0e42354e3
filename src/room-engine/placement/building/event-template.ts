import { authorize, forbidden, type JsonObject, notFound } from '../../../protocol/index.ts';
import { composeEvent } from '../../timeline/compose-event.ts';
import { checkStorable, type EventToSend } from '../../timeline/event-to-send.ts';
import { SendContext } from '../../timeline/send-context.ts';
import type { PlacementDeps } from '../placement-deps.ts';

/**
 * An event that a user of another server may complete.
 * Source: server-server API, `GET /make_join`, `/make_leave`, `/make_knock`.
 */
export async function buildEventTemplate(
  deps: PlacementDeps,
  roomId: string,
  draft: EventToSend,
): Promise<{ readonly event: JsonObject }> {
  const { heads, events, stateKeys } = deps;
  checkStorable(draft);
  const context = new SendContext(events, draft);
  for (;;) {
    const head = await heads.get(roomId);
    if (!head || head.chain.id === undefined) throw notFound('Unknown room');
    await context.load(head, stateKeys);
    if (head.broken || !context.isComplete(head)) continue;
    const { unsigned } = composeEvent(deps, draft, head, context);
    const { event } = unsigned;
    // A server that vouches for the join signs it later.
    const verdict = authorize(
      event,
      (type, key) => context.state(head, type, key)?.event,
      () => true,
    );
    if (!verdict.allowed) throw forbidden(verdict.reason);
    // Who completes it chooses the id where ids are chosen, and adds hashes and signatures.
    const { hashes, signatures, event_id, ...rest } = event.pdu;
    return { event: rest };
  }
}
