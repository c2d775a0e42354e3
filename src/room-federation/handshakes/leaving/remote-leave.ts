import { opaqueIdLength, randomLetters } from '../../../kernel/randomness.ts';
import { type BuiltEvent, buildEvent, type JsonObject, referenceHash } from '../../../protocol/index.ts';
import type { Placement, StoredEvent } from '../../../room-engine/index.ts';
import type { HandshakeDeps } from '../handshake.ts';
import type { PendingLeaves } from './pending-leaves.ts';
import type { LeaveRecipients } from './send-leave.ts';

/**
 * Milliseconds for which a client waits for the servers. The leave succeeds in any case; when a server
 * accepts it within this time, the event that it accepted is stored.
 */
const clientTimeout = 500;

export interface LeaveRequest extends LeaveRecipients {
  /** The invite or knock to end. */
  readonly present: StoredEvent;
  readonly userId: string;
  readonly content: JsonObject;
}

export interface RemoteLeaveDeps extends HandshakeDeps {
  readonly placement: Pick<Placement, 'addOutOfBand'>;
  readonly pendingLeaves: Pick<PendingLeaves, 'begin'>;
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

  /**
   * Stores the leave even if no server accepts it. Sends it to slow servers in the background, and to unreachable
   * servers later.
   */
  async leave(request: LeaveRequest): Promise<StoredEvent> {
    const { pendingLeaves, placement } = this.#deps;
    const { present, userId, content } = request;
    const { roomId, version } = present.event;
    const leave = { roomId, userId, content, version: version.id };
    const { each, others } = request;
    const { sent } = await pendingLeaves.begin(leave, present.nid, { each, others });
    const accepted = await this.#within(clientTimeout, sent);
    const event = accepted ?? buildLocalLeave(request, this.#deps);
    return placement.addOutOfBand({ roomId, version: event.event.version }, event, { state: [] });
  }

  /** Resolves with what `promise` resolves to, or with `undefined` after `timeout` milliseconds. */
  async #within<T>(timeout: number, promise: Promise<T>): Promise<T | undefined> {
    const { promise: ended, resolve } = Promise.withResolvers<undefined>();
    const timer = this.#deps.clock.setTimer(timeout, () => resolve(undefined));
    try {
      return await Promise.race([promise, ended]);
    } finally {
      timer.cancel();
    }
  }
}

/** Builds the leave that is stored when no server accepts a leave in time; it is stored only on this server. */
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
        eventId: `$${randomLetters(randomness, opaqueIdLength)}:${signer.serverName}`,
        referenceHash: () => referenceHash(pdu, version),
      }),
    },
    version,
    signer,
  );
}
