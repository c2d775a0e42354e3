import { authorize, forbidden, notFound } from '../../../protocol/index.ts';
import type { EventToSend } from '../../event-to-send.ts';
import { composeEvent } from '../../timeline/compose-event.ts';
import { SendContext } from '../../timeline/send-context.ts';
import type { VerifiedEvent } from '../../verified-event.ts';
import type { PlacementDeps } from '../placement-deps.ts';

/**
 * Composes and signs an event of a local user after the current forward extremities, and authorizes it by the
 * current state. The event is not stored.
 * @throws MatrixError M_NOT_FOUND, M_FORBIDDEN, M_TOO_LARGE, M_BAD_JSON
 */
export async function buildAtEnd(
  deps: PlacementDeps,
  roomId: string,
  draft: EventToSend,
): Promise<VerifiedEvent> {
  const { heads, events, signer } = deps;
  const context = new SendContext(events, draft);
  for (;;) {
    const head = await heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    await context.load(head);
    if (head.broken || !context.isComplete(head)) continue;
    const { unsigned } = composeEvent(deps, draft, head, context);
    const { event, signingInput } = unsigned;
    const verdict = authorize(event, (type, key) => context.state(head, type, key)?.event);
    if (!verdict.allowed) throw forbidden(verdict.reason);
    return { event, json: unsigned.complete(signer.key.sign(signingInput)) };
  }
}
