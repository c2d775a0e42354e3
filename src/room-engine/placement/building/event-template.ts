import { authorize, forbidden, type JsonObject, notFound } from '../../../protocol/index.ts';
import { checkStorable, type EventToSend } from '../../event-to-send.ts';
import { composeEvent } from '../../timeline/compose-event.ts';
import { SendContext } from '../../timeline/send-context.ts';
import type { PlacementDeps } from '../placement-deps.ts';

/**
 * Builds the event template that a remote server completes and signs for its user.
 * Source: server-server API, `GET /make_join`, `/make_leave`, `/make_knock`.
 * @throws MatrixError M_NOT_FOUND, M_BAD_JSON, M_TOO_LARGE, M_FORBIDDEN when the current state does not allow the event
 */
export async function buildEventTemplate(
  deps: PlacementDeps,
  roomId: string,
  draft: EventToSend,
): Promise<{ readonly event: JsonObject }> {
  const { heads, events } = deps;
  checkStorable(draft);
  const context = new SendContext(events, draft);
  for (;;) {
    const head = await heads.get(roomId);
    if (!head || head.chain.id === undefined) throw notFound('Unknown room');
    await context.load(head);
    if (head.broken || !context.isComplete(head)) continue;
    const { unsigned } = composeEvent(deps, draft, head, context);
    const { event } = unsigned;
    // `send_join` adds and checks the signature of the server that authorises a restricted join, so it counts as valid
    // here.
    const verdict = authorize(
      event,
      (type, key) => context.state(head, type, key)?.event,
      () => true,
    );
    if (!verdict.allowed) throw forbidden(verdict.reason);
    // The remote server adds hashes and signatures, and the event id in room versions 1 and 2.
    const { hashes, signatures, event_id, ...template } = event.pdu;
    return { event: template };
  }
}
