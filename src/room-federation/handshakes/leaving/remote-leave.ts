import { randomLetters } from '../../../kernel/randomness.ts';
import { type BuiltEvent, buildEvent, type JsonObject, referenceHash } from '../../../protocol/index.ts';
import type { Placement, StoredEvent } from '../../../room-engine/index.ts';
import type { HandshakeDeps } from '../handshake.ts';
import type { PendingLeaves } from './pending-leaves.ts';
import { type LeaveRecipients, sendLeave } from './send-leave.ts';

/** Milliseconds for all servers together: a client waits, and the leave succeeds in any case. */
const clientTimeout = 10_000;

export interface LeaveRequest extends LeaveRecipients {
  /** The invite or knock to end. */
  readonly present: StoredEvent;
  readonly userId: string;
  readonly content: JsonObject;
}

export interface RemoteLeaveDeps extends HandshakeDeps {
  readonly placement: Pick<Placement, 'addOutOfBand'>;
  readonly pendingLeaves: Pick<PendingLeaves, 'replace'>;
}

/**
 * Rejects invites to rooms that this server is not in, and retracts knocks on them.
 * Source: server-server API, "Leaving Rooms (Rejecting Invites)".
 */
export class RemoteLeave {
  readonly #deps: RemoteLeaveDeps;

  constructor(deps: RemoteLeaveDeps) {
    this.#deps = deps;
  }

  /** Leaves in any case. Servers that are unreachable receive the leave later. */
  async leave(request: LeaveRequest): Promise<StoredEvent> {
    const { pendingLeaves, placement } = this.#deps;
    const { present, userId, content } = request;
    const { roomId, version } = present.event;
    const leave = { roomId, userId, content, version: version.id };
    const { event: accepted, left } = await sendLeave(this.#deps, leave, request, {
      timeout: clientTimeout,
      totalTimeout: clientTimeout,
    });
    await pendingLeaves.replace(leave, present.nid, left);
    const event = accepted ?? buildLocalLeave(request, this.#deps);
    return placement.addOutOfBand({ roomId, version: event.event.version }, event, { state: [] });
  }
}

/** Builds the leave for when no server accepts one; it is stored here only. */
function buildLocalLeave({ present, userId, content }: LeaveRequest, deps: HandshakeDeps): BuiltEvent {
  const { signer, clock, randomness } = deps;
  const { version, roomId, eventId, depth, pdu } = present.event;
  const draft = {
    roomId,
    type: 'm.room.member',
    sender: userId,
    stateKey: userId,
    content: { ...content, membership: 'leave' },
  };
  return buildEvent(
    {
      ...draft,
      depth: depth + 1,
      originServerTs: clock.now(),
      prevEventIds: [eventId],
      authEventIds: [eventId],
      ...(version.eventId === 'origin' && {
        eventId: `$${randomLetters(randomness, 18)}:${signer.serverName}`,
        referenceHash: () => referenceHash(pdu, version),
      }),
    },
    version,
    signer,
  );
}
